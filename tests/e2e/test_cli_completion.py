"""What bash offers behind `hermes`: the commands, their verbs and options, files where files are meant."""
# SPDX-License-Identifier: Apache-2.0
import re
import subprocess

import pytest

from node import hermes


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    path = tmp_path_factory.mktemp("completion") / "script"
    path.write_text(hermes("completion", "bash").stdout)
    return path


@pytest.fixture
def offered(script, tmp_path):
    """offered("hermes", "list", "que"): the words that may stand in the last one's place."""
    (tmp_path / "a file.json").touch()

    def offer(*words):
        done = subprocess.run(["bash", "-uec", 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hermes; '
                               'printf "%s\\n" "${COMPREPLY[@]}"', "bash", str(script), *words],
                              cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        assert done.stderr == ""
        return done.stdout.split("\n")[:-1]

    return offer


def commands():
    return re.findall(r"^  ([a-z-]+) +\S", hermes("help").stdout, re.M)


@pytest.mark.parametrize("words, there", [
    (["li"], ["list"]),
    (["list", "que"], ["queues"]),
    (["user", ""], ["add", "set", "passwd", "delete", "list"]),
    (["user", "p"], ["passwd"]),
    (["declare", "e"], ["exchange"]),
    (["help", "che"], ["check-data"]),
    (["help", "tls.ver"], ["tls.verify"]),
    (["publish", "--hea"], ["--header"]),
    (["publish", "--file", ""], ["a file.json"]),
    (["import", "a"], ["a file.json"]),
    (["vhost", "set", "shop", "--tracing", ""], ["on", "off"]),
    (["publish", "--key", ""], [""]),           # only the user knows
    (["get", ""], [""]),
    (["nonsense", ""], [""]),
])
def test_words(offered, words, there):
    assert offered("hermes", *words) == there


def test_nothing_is_left_out(offered):
    assert len(commands()) > 20 and set(offered("hermes", "")) == set(commands())
    for name in commands():
        options = re.findall(r"^  (?:-\w, |    )(--[a-z-]+)", hermes("help", name).stdout, re.M)
        assert options and set(options) <= set(offered("hermes", name, "--")), name


def test_every_setting_is_explained_and_offered(offered):
    """As the program has them; behind help, one by one and in their sections."""
    shown = re.findall(r"^([a-z_]+\.[a-z_]+) +(.*)$", hermes("server", "--check").stdout, re.M)
    keys = [key for key, _ in shown]
    assert len(keys) > 50
    assert set(keys) | {key.split(".")[0] for key in keys} | {"settings"} == set(offered("hermes", "help", "")) - set(commands())
    assert re.findall(r"^(\S+) ", hermes("help", "settings").stdout, re.M) == keys
    for section in {key.split(".")[0] for key in keys}:
        assert re.findall(r"^(\S+)", hermes("help", section).stdout, re.M) == \
            [key for key in keys if key.startswith(section + ".")]


@pytest.mark.parametrize("key, value, default, sighup", [
    ("tls.verify", "none, optional, required", "none", "at once"),
    ("tls.certificate", "a file, or a list of them", None, "at the next start"),
    ("proxy.trusted", "a network, or a list of them", None, "at the next start"),
    ("node.listen", "an address, or a list of them", "::", "at the next start"),
    ("limits.handshake", "a time (such as 500ms, 10s, 5m, 1h)", "10s", "at the next start"),
    ("tcp.nodelay", "true, false", "true", "at the next start"),
])
def test_help_of_a_setting(key, value, default, sighup):
    said = hermes("help", key)
    assert said.returncode == 0 and said.stdout.startswith(key + ": a key of hermes.yml\n\n")
    rows = re.findall(r"^  (\S+) +(.*)$", said.stdout, re.M)
    assert rows == [("value", value)] + ([("default", default)] if default else []) + \
        [("SIGHUP", "a change takes effect " + sighup)]


@pytest.mark.parametrize("word, said", [
    ("store.snc", "hermes help: there is no setting 'store.snc'; nearest: 'store.sync'\n"),
    ("x.y", "hermes help: there is no setting 'x.y'; 'hermes help settings' shows all\n"),
    ("stor", "hermes: unknown command 'stor'; 'hermes help' shows all\n"),
])
def test_help_of_what_is_not_there(word, said):
    done = hermes("help", word)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", said)


def test_another_shell():
    done = hermes("completion", "fish")
    assert done.returncode == 2 and done.stderr.startswith("hermes completion: there is one for bash only")
