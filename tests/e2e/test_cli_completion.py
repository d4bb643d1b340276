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


def test_another_shell():
    done = hermes("completion", "fish")
    assert done.returncode == 2 and done.stderr.startswith("hermes completion: there is one for bash only")
