#!/usr/bin/env python3
"""Makes the chapters of the manual that are lists, and the commands of the man page, out of the tables in the sources.

    contrib/manual/make.py [--write] [PROGRAM]

Without --write nothing is changed: it fails, and names what is out of date. PROGRAM (src/hermes unless given) is asked what
its commands are.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parents[1]
MADE = "\nThis chapter is made by `contrib/manual/make.py` out of `%s`.\n"

SECTIONS = {
    "node": "The node and its port for AMQP", "tls": "TLS", "proxy": "The PROXY protocol of load balancers",
    "management": "The HTTP API and the console", "prometheus": "Metrics", "log": "The log", "store": "Data on disk",
    "memory": "Memory", "disk": "Disk space", "limits": "Bounds", "tcp": "Sockets", "default_user": "The first account",
    "definitions": "Definitions", "compat": "What the node calls itself",
}


def strings(text):
    """C string literals after one another, as one."""
    return "".join(re.sub(r'\\(.)', r"\1", one) for one in re.findall(r'"((?:[^"\\]|\\.)*)"', text))


def defines(source):
    """Macros that are a string."""
    return dict(re.findall(r'^#define (\w+) (?:\\\n\s*)?(".*")$', source, re.M))


def value_of(row, field):
    """The strings that the row gives a field, or None."""
    found = re.search(r'\.%s =\s*((?:"(?:[^"\\]|\\.)*"\s*)+)' % field, row)
    return strings(found.group(1)) if found else None


def rows_of(source, table):
    """The rows of an array of structs: what stands between its outer braces."""
    body = source[source.index(table) + len(table):]
    depth, start, quoted = 1, None, False
    i = body.index("{") + 1
    while depth > 0:
        c = body[i]
        if c == '"' and body[i - 1] != "\\":
            quoted = not quoted
        if not quoted and c == "{":
            depth += 1
            start = i if depth == 2 else start
        if not quoted and c == "}":
            depth -= 1
            if depth == 1:
                yield body[start + 1:i]
        i += 1


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def settings(_):
    source = (TOP / "src/base/config.c").read_text()
    rows, section = [], None
    for row in rows_of(source, "struct cfg_key cfg_keys[] ="):
        head = re.search(r'(CFG|LATER)\(\s*"([a-z_.]+)"', row)
        name = head.group(2)
        if name.split(".")[0] != section:
            section = name.split(".")[0]
            rows += ["", "## `%s`: %s" % (section, SECTIONS.get(section, section)), "", "| key | default | |", "|---|---|---|"]
        default = value_of(row, "def")
        text = value_of(row, "text")
        if default is None and re.search(r" Default: ([^.]+(?:\.\w[^.]*)*)\.$", text):
            default = "(%s)" % re.search(r" Default: (.+)\.$", text).group(1)
            text = text[:text.rindex(" Default: ")]
        words = re.search(r"\.words = (\w+)", row)
        if words:
            listed = re.search(r"%s\[\] = \{(.*?)NULL" % words.group(1), source, re.S).group(1)
            text += " (" + ", ".join("`%s`" % one for one in re.findall(r'"([^"]*)"', listed)) + ")"
        if "CFG_RELOAD" in row:
            text += " *Read again on SIGHUP.*"
        if head.group(1) == "LATER":
            text += " *Comes with a later version.*"
        shown = "" if default is None else default if default.startswith("(") else "`%s`" % (default or "''")
        rows.append("| `%s` | %s | %s |" % (name, cell(shown), cell(text)))
    return """# Settings

`hermes server -c FILE` reads one YAML file; every key may be left out, and so may the file. `etc/hermes.yml` shows all keys, the
lists too (vhosts, users, policies, exchanges, queues, bindings), with comments. Sizes take KiB, MiB, GiB; times ms, s, m, h.
`${VAR}` comes from the environment, `${VAR:-x}` has a default. An unknown key stops the start and names the nearest one;
`hermes server --check -c FILE` says all that is wrong in a file and starts nothing. SIGHUP (`systemctl reload hermes`) reads the
file again: the lists and the keys marked below hold at once, of others the log says that they wait for the next start.
`hermes help KEY` explains one on the terminal, `hermes help tls` a section, `hermes help settings` all.
""" + MADE % "src/base/config.c" + "\n".join(rows) + "\n"


def http_api(_):
    source = (TOP / "mgmt/routes.def").read_text()
    who = {"NOBODY": "everybody", "ANY_TAG": "any tag", "MONITORING": "monitoring", "POLICYMAKER": "policymaker",
           "ADMINISTRATOR": "administrator", "MANAGEMENT": "management"}
    of_vhost = {"NONE": "", "VISIBLE": ", sees the vhost", "OWN": ", has rights in the vhost"}
    rows = []
    for kind, body in re.findall(r'^(ROUTE\w*)\((.*)\)$', source, re.M):
        found = re.match(r'(\w+), "([^"]*)", (\w+), (\w+), \w+, (".*")$', body)
        method, path, needs, vhost, text = found.groups()
        path = re.sub(r":(\w+)", r"{\1}", path)
        rows.append("| `%s %s` | %s | %s |" % (method, path, who.get(needs, needs.lower()) + of_vhost.get(vhost, ""),
                                              cell(strings(text))))
    return """# The HTTP API

Port 15672 (`management.port`), JSON, with the name and password of a user (Basic) or the cookie of `POST /api/login`. Paths,
fields and answers are RabbitMQ's where RabbitMQ has them; what is below `/api/hermes/` is Hermes' own, and so are `/healthz` and
`/readyz`. In paths the vhost `/` is `%2F`. `GET /api/hermes/routes` is this list as JSON. [Rights](security.md) tells what tags
are; the README says more of watching messages, moving them, charts and batches.

    curl -u guest:guest http://127.0.0.1:15672/api/overview
    curl -u guest:guest 'http://127.0.0.1:15672/api/queues?page=1&page_size=100&sort=messages&sort_reverse=true'
""" + MADE % "mgmt/routes.def" + "\n| | who | |\n|---|---|---|\n" + "\n".join(rows) + "\n"


def ask(program, *args):
    return subprocess.run([program, "help", *args], capture_output=True, text=True, check=True).stdout


def command_names(program):
    return re.findall(r"^  ([a-z-]+) +\S", ask(program), re.M)


def commands(program):
    text = """# Commands

`hermes COMMAND [OPTIONS]`. Exit status: 0 done, 1 failed, 2 wrong usage or settings. Client commands talk to the node on this
machine unless `--url` (HTTP) or `--amqp`, or `HERMES_URL` and `HERMES_AMQP`, name another. What takes longer than a second tells a
terminal, on standard error, how far it is.
""" + MADE % "hermes help"
    for name in command_names(program):
        text += "\n## hermes %s\n\n```\n%s\n```\n" % (name, ask(program, name).rstrip())
    return text


# Which node, and who: of many commands, told once in the man page.
COMMON = ("--amqp", "--url", "--user", "--password", "--password-file", "--ca-file", "--cert-file", "--key-file")


def roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return "\\&" + text if text[:1] == "." else text


def options_of(text):
    """(how it is written, what it does) for each option of a command's help."""
    found = []
    for line in text.splitlines():
        head = re.match(r"  (-\w, |    )(--[a-z-]+)((?: [^ ]+)?)(?: {2,}| |$)(.*)", line)
        if head:
            short, name, value, told = head.groups()
            found.append([short.strip() + " " * bool(short.strip()) + name + value, [told] if told else []])
        elif line.startswith(" " * 10):
            found[-1][1].append(line.strip())
    return [(head, " ".join(told)) for head, told in found]


def roff_options(options):
    for head, told in options:
        yield from (".TP", "\\fB%s\\fR" % roff(head), roff(told))


def is_common(option):
    return re.search(r"--[a-z-]+", option[0]).group() in COMMON + ("--help",)


def roff_command(name, text):
    """A command's help: its summary, its usage, what it says, examples, options."""
    said, _, options = text.partition("\noptions:\n")
    summary, usage, said = re.match(r"hermes [a-z-]+: (.*)\n\nusage: (.*)\n\n?((?:.*\n)*)", said + "\n").groups()
    yield from (".SS hermes " + roff(name), roff(summary[:1].upper() + summary[1:]) + ".", ".PP", ".nf",
                "\\fB%s\\fR" % roff(usage), ".fi", ".PP")
    shown = False
    for line in said.rstrip().splitlines():
        if line.startswith("  ") != shown:
            shown = not shown
            yield from (".PP", ".RS", ".nf") if shown else (".fi", ".RE", ".PP")
        yield roff(line.strip())
    if shown:
        yield from (".fi", ".RE")
    yield from roff_options(o for o in options_of(options) if not is_common(o))


def man_page(program):
    """The page as it stands, with its commands made anew."""
    page = (TOP / "man/hermes.1").read_text()
    first, last = ".\\\" Made by contrib/manual/make.py out of hermes help, from here\n", ".\\\" to here\n"
    start, end = page.index(first) + len(first), page.index(last)
    lines, common = [], {}
    for name in command_names(program):
        text = ask(program, name)
        lines += roff_command(name, text)
        common.update((o[0], o[1]) for o in options_of(text.partition("\noptions:\n")[2]) if is_common(o))
    lines += [".SS Options of the commands that talk to a node",
              "They stand above what the address says."]
    lines += roff_options(o for o in common.items() if "--help" not in o[0])
    return page[:start] + "\n".join(lines) + "\n" + page[end:]


def rabbitmqctl(_):
    source = (TOP / "src/cli/other_names.c").read_text()
    macros = {name: strings(value) for name, value in re.findall(r'^#define (\w+) (?:\\\n\s*)?(".*")$', source, re.M)}
    rows = []
    for row in rows_of(source, "struct other_name {"[:0] + "names[] ="):
        name, rest = re.match(r'\s*"([^"]*)",\s*(.*)$', row, re.S).groups()
        here = "".join(macros.get(word, "") if word else strings(text)
                       for word, text in re.findall(r'\b([A-Z_]+)\b(?=[^"]*(?:"[^"]*"[^"]*)*$)|("(?:[^"\\]|\\.)*")', rest))
        rows.append("| `%s` | %s |" % (name, "`%s`" % cell(here) if here.startswith("hermes ") else cell(here)))
    return """# Commands of rabbitmqctl, rabbitmq-diagnostics and rabbitmqadmin

What a command of RabbitMQ's is called here; `hermes NAME` with one of these names says the same. RabbitMQ's own `rabbitmqadmin`
works with a Hermes node, too.
""" + MADE % "src/cli/other_names.c" + "\n| RabbitMQ | here |\n|---|---|\n" + "\n".join(rows) + "\n"


CHAPTERS = {"settings.md": settings, "http-api.md": http_api, "commands.md": commands, "rabbitmqctl.md": rabbitmqctl,
            "../../man/hermes.1": man_page}


def main(args):
    write = args[:1] == ["--write"]
    program = (args[1:] if write else args) or [str(TOP / "src/hermes")]
    old = []
    for name, make in CHAPTERS.items():
        text = make(program[0])
        file = HERE / name
        if file.exists() and file.read_text() == text:
            continue
        old.append(name)
        if write:
            file.write_text(text)
    for name in old:
        print("%s %s" % ("written:" if write else "out of date:", name))
    return 1 if old and not write else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
