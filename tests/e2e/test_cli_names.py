"""What those type who come from RabbitMQ's tools is answered with our command; its refusals are in words."""
# SPDX-License-Identifier: Apache-2.0
import re
import shlex

import pytest

from node import TOP, hermes
from shell import broker, cli      # noqa: F401 (fixtures)

SOURCE = re.sub(r"\s+", " ", (TOP / "src/cli/other_names.c").read_text())
NAMES = dict(re.findall(r'\{ "([a-z_]+)", "(hermes [^"]+)" \}', SOURCE))


def test_the_table_was_found():
    assert len(NAMES) > 70


@pytest.mark.parametrize("name", NAMES)
def test_our_command_is_one(name):
    """With all that stands for something in it, it is no wrong usage: it fails for want of a node."""
    assert hermes(name).stderr == "hermes: '%s' is '%s' here\n" % (name, NAMES[name])
    words = [re.sub(r"^N$", "1", re.sub(r"^JSON$", '{"max-length": 1}', word)) for word in shlex.split(NAMES[name])[1:]]
    if words[0] in ("server", "version", "completion"):      # they ask no node
        words = [re.sub("^FILE$", str(TOP / "etc/hermes.yml"), word) for word in words]
        assert words == ["server"] or hermes(*words).returncode == 0
        return
    if words[1:2] in (["add"], ["passwd"]) and "--no-password" not in words and words[0] == "user":
        words.append("--no-password")
    done = hermes(*words, env={"HERMES_URL": "http://127.0.0.1:1", "HERMES_AMQP": "amqp://127.0.0.1:1"})
    if words[0] == "import":
        assert (done.returncode, "cannot read FILE" in done.stderr) == (1, True)
    else:
        assert (done.returncode, bool(re.search("cannot reach 127.0.0.1( port |:)1", done.stderr))) == (1, True), done.stderr


@pytest.mark.parametrize("words, said", [
    (["add-user"], "hermes: 'add-user' is 'hermes user add NAME' here\n"),
    (["list_quues"], "hermes: 'list_queues' is 'hermes list queues --columns name,messages' here\n"),
    (["help", "set_policy"], "hermes: 'set_policy' is 'hermes policy set NAME PATTERN --definition JSON --vhost NAME' here\n"),
    (["trace_on"], "hermes: 'trace_on' is 'hermes vhost set NAME --tracing on' here\n"),
    (["rabbitmqctl", "list_queues"], "hermes: 'rabbitmqctl': that stands before no command here: "),
    (["rabbitmq-diagnostics", "ping"], "hermes: 'rabbitmq-diagnostics': that stands before no command here: "),
    (["join_cluster", "x"], "there are no clusters yet"),
    (["check_data"], "unknown command 'check_data'; nearest: 'check-data'"),
    (["add", "user", "x"], "hermes: 'add': it stands behind what is added"),
    (["list", "queues", "name", "messages"], "usage: hermes list queues [--columns NAME,...] [OPTIONS]\n"),
    (["list", "foo"], "hermes list: there is no 'foo'; there is queues, exchanges, bindings,"),
    (["delete", "vhost", "x"], "hermes delete: it is 'hermes vhost delete'\n"),
    (["delete", "foo", "x"], "hermes delete: there is no 'foo'; there is queue, exchange, connection\n"),
    (["list"], "'hermes help list' says more\n"),
    (["user", "change_password"], "hermes user: 'change_password' is 'hermes user passwd NAME' here\n"),
    (["list", "queues", "-p", "shop"], "unknown option '-p'; a virtual host is --vhost NAME"),
    (["list", "queues", "--hostname=x"], "unknown option '--hostname'; a node is --url http://HOST:PORT"),
    (["list", "queues", "--formatter", "json"], "unknown option '--formatter'; it is --json"),
    (["\x1b[31m"], "hermes: unknown command '\\x1b[31m'"),
])
def test_other_words(words, said):
    done = hermes(*words)
    assert done.returncode == 2 and said in done.stderr


@pytest.mark.parametrize("words, said", [
    ("policy set p x -s max-length=1 --vhost none", "policy 'p' in vhost 'none': there is no such vhost"),
    ("bind amq.topic q --vhost none", "exchange 'amq.topic' to queue 'q' with key '' in vhost 'none': there is no such vhost"),
    ("unbind amq.topic q --vhost none", "there is no binding of exchange 'amq.topic' to queue 'q' with key '' in vhost 'none'"),
    ("unbind none q", "there is no binding of exchange 'none' to queue 'q' with key '' in vhost '/'"),
    ("bind none q", "exchange 'none' to queue 'q' with key '' in vhost '/': no exchange 'none' in vhost '/'"),
    ("permission set none a b c", "permission of user 'none' in vhost '/': there is no such vhost, or no such user"),
    ("declare queue q --vhost none", "queue 'q' in vhost 'none': there is no such vhost"),
    ("export --vhost none", "vhost 'none': there is no such vhost"),
    ("user add h --password-hash ?", "user 'h': that is not base64"),
])
def test_refusals_in_words(cli, words, said):
    assert cli(*shlex.split(words), status=1) == "hermes %s: %s\n" % (words.split()[0], said)
