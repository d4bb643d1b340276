"""Whoever changes from the shell what the settings have is told so."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from node import Node, hermes

SETTINGS = """
users:
  - {username: guest, password: guest, tags: [administrator], permissions: [".*", ".*", ".*"]}
  - {username: app, password: first}
policies: [{name: short, pattern: "^s", definition: {max-length: 1}}]
"""
TOO = "note: it stands in the settings of the node, too, and "


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("note"), SETTINGS).start()
    yield {"HERMES_URL": this.http_url}
    this.stop()


@pytest.mark.parametrize("words, said", [
    (["user", "passwd", "app", "--new-password", "second"], "what is there comes back at the next SIGHUP or start: change it there"),
    (["policy", "set", "short", "^s", "-s", "max-length=2"], "what is there comes back at the next SIGHUP or start: change it there"),
    (["policy", "delete", "short"], "comes back at the next SIGHUP or start: delete it there"),
    (["user", "delete", "app"], "comes back at the next SIGHUP or start: delete it there"),
    (["policy", "set", "other", "^o", "-s", "max-length=2"], None),
    (["user", "add", "other", "--no-password"], None),
], ids=lambda v: " ".join(v[:2]) if isinstance(v, list) else "")
def test_note(env, words, said):
    done = hermes(*words, env=env)
    assert done.returncode == 0 and done.stdout
    assert done.stderr == ("hermes %s: %s%s\n" % (words[0], TOO, said) if said else "")
