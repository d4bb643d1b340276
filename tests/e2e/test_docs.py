"""The tables in the code and what is written about them: no key, command or route without its text."""
# SPDX-License-Identifier: Apache-2.0
import re
import shlex
import subprocess
import sys

import pytest

from node import SLOW, TOP, clean_env, hermes


def source(path):
    """The text of a file with its blanks made one each, so that its layout does not matter."""
    return re.sub(r"\s+", " ", (TOP / path).read_text())


KEYS = re.findall(r'\bCFG\( ?"([a-z_]+\.[a-z_]+)"', source("src/base/config.c"))
ROWS = re.findall(r'\{ CFG\( ?"([a-z_.]+)"(.*?) \},(?= \{| \};)', source("src/base/config.c"))
#: of each list of entries: its name and each key that an entry may have
LIST_KEYS = [(name, key)
             for name, keys in re.findall(r'\{ "(\w+)", "[\w ]+", "\w+", (\w+_keys),', source("src/settings_lists.c"))
             for key in re.findall(r'(?:\.name = "|TEXT\(|BOOL\(|TABLE\()([\w-]+)', re.search(
                 r"item_key %s\[\] = \{(.*?)\.name = NULL" % keys, source("src/settings_lists.c")).group(1))]
OPTION_TABLES = source("src/cli/command_options.h") + source("src/cli/commands.c")
COMMANDS = re.findall(r'\{ \.name = "([a-z-]+)", \.run = ', source("src/cli/commands.c"))
OPTIONS = sorted(set(re.findall(r'\{ \.name = "([a-z-]+)", \.(?:letter|value|text|repeats|env)\b',
                                OPTION_TABLES)))
MANUAL = (TOP / "man/hermes.1").read_text().replace("\\-", "-")
SAMPLE = (TOP / "etc/hermes.yml").read_text()
README = (TOP / "README.md").read_text()


def test_the_tables_were_found():
    assert len(KEYS) > 40
    assert len(ROWS) > 35
    assert len(LIST_KEYS) > 35
    assert len(COMMANDS) >= 6
    assert len(OPTIONS) > 20


@pytest.mark.parametrize("key", KEYS)
def test_key_is_in_the_manual(key):
    assert re.search(r"^\.B %s$" % re.escape(key), MANUAL, re.M)


@pytest.mark.parametrize("key", KEYS)
def test_key_is_in_the_sample(key):
    section, name = key.split(".")
    block = re.search(r"^(?:# )?%s:(?:.*\n)(?:(?:#? +|# +).*\n|$)*" % section, SAMPLE, re.M)
    assert block and re.search(r"\b%s:" % name, block.group(0)), key


def manual_of(key):
    """Its paragraph, without requests of roff."""
    text = re.search(r"^\.B %s\n((?:(?!\.TP|\.PP|\.S).*\n)+)" % re.escape(key), MANUAL, re.M).group(1)
    return re.sub(r"\s+", " ", re.sub(r"^\.[A-Z]+ ", "", text, flags=re.M))


@pytest.mark.parametrize("key, row", ROWS, ids=[key for key, _ in ROWS])
def test_default_and_unit_of_a_key(key, row):
    """As the table has them: in the manual, and as the value that the sample shows."""
    default = re.search(r'\.def = "([^"]*)"', row)
    if default is None:
        return
    default = default.group(1)
    assert re.search(r'Default: "?%s"?\.( |$)' % re.escape(default), manual_of(key)), manual_of(key)
    section, name = key.split(".")
    block = re.search(r"^(?:# )?%s:(?:.*\n)(?:(?:#? +|# +).*\n|$)*" % section, SAMPLE, re.M).group(0)
    assert re.search(r'\b%s: *"?%s"?[ \n,}]' % (name, re.escape(default)), block), block
    if re.search(r"\b(SIZE|MS|SECONDS)\b", row) and re.fullmatch("[1-9][0-9]*", default):
        assert re.search(r"in (bytes|seconds|milliseconds)", manual_of(key)), manual_of(key)


@pytest.mark.parametrize("name, key", LIST_KEYS, ids=["%s %s" % k for k in LIST_KEYS])
def test_key_of_a_list_is_in_the_sample(name, key):
    block = re.search(r"^# %s:\n((?:#  .*\n|# *- .*\n)+)" % name, SAMPLE, re.M).group(1)
    assert re.search(r"\b%s\b" % re.escape(key), block), block


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_in_the_manual(command):
    assert re.search(r"^\.SS hermes %s$" % command, MANUAL, re.M)


@pytest.mark.parametrize("option", OPTIONS)
def test_option_is_in_the_manual(option):
    assert re.search(r"--%s\b" % option, MANUAL)


def test_manual_says_which_options_repeat():
    """And has words that are to be typed as they are typed."""
    table = re.findall(r'\{ \.name = "([a-z-]+)",((?: \.[^}]*?)?) \}', OPTION_TABLES)
    texts = dict(re.findall(r"^\\fB(?:-\w, )?--([a-z-]+).*\n((?:[^.\n].*\n)+)", MANUAL, re.M))
    repeated = [name for name, row in table if ".repeats = true" in row]
    # --key may be given to consume several times, to other commands once
    assert sorted(repeated) == ["argument", "header", "key", "listen", "property", "set"]
    for name in set(repeated) - {"key"}:
        assert "may be given more than once" in texts[name].replace("\n", " "), name
    assert texts["log-level"] == "error, warning, info or debug\n"
    assert texts["property"].startswith("content_type, ")


def test_environment_is_in_the_manual():
    """Each variable that stands in for an option; the list of commands has them from the table."""
    names = set(re.findall(r"\[(HERMES_[A-Z_]+)\]", (TOP / "contrib/manual/commands.md").read_text()))
    section = re.search(r"^\.SH ENVIRONMENT$(.*?)^\.SH", MANUAL, re.M | re.S).group(1)
    assert len(names) > 10
    assert names - set(re.findall(r"HERMES_[A-Z_]+", section)) == set()


def test_links_in_the_readme():
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (TOP / target).exists(), target
    for path in re.findall(r"^\| `([\w/.]+)`", README, re.M):
        assert (TOP / path).exists(), path


def readme_code(language):
    return re.search(r"^```%s\n(.*?)^```" % language, README, re.M | re.S).group(1)


def test_first_messages_of_the_readme(node):
    """One after the other on one node, as a reader types them."""
    this = node()
    env = {"HERMES_AMQP": this.amqp_url, "HERMES_URL": this.http_url}
    lines = [shlex.split(line) for line in re.findall(r"^    src/hermes (.*)", README, re.M)]
    assert [line[0] for line in lines] == ["publish", "get", "status"]
    for line in lines:
        done = hermes(*line, env=env)
        assert done.returncode == 0, (line, done.stderr)
    program = readme_code("python").replace('("localhost")', '("localhost", %d)' % this.port)
    done = subprocess.run([sys.executable, "-c", program], env=clean_env(), capture_output=True, text=True,
                          timeout=30 * SLOW)
    assert (done.returncode, done.stdout) == (0, "Hello from Python\n"), done.stderr
    # The Java program is not run here; it is to declare the queue as it is now.
    assert 'queueDeclare("hello", true, false, false, null)' in readme_code("java")


def test_settings_of_the_readme(tmp_path):
    file = tmp_path / "hermes.yml"
    file.write_text(readme_code("yaml"))
    done = hermes("server", "--check", "-c", file, env={"APP_PASSWORD": "secret"})
    assert done.returncode == 0, done.stderr
