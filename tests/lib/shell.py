"""Fixtures for tests of the commands: one node for a module, and the commands against it."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from node import Node, hermes


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("cli")).start()
    yield this
    this.stop()


@pytest.fixture
def cli(broker):
    """cli(WORDS..., status=0): runs hermes against the node; its output, of a failure standard error."""
    def run(*words, status=0, stdin="", env=None):
        done = hermes(*words, env={"HERMES_URL": broker.http_url, **(env or {})}, stdin=stdin)
        assert done.returncode == status, (words, done.stdout, done.stderr)
        assert status == 0 or done.stderr.startswith("hermes %s: " % words[0]), done.stderr
        return done.stdout if status == 0 else done.stderr

    return run


def rows(text):
    """The table as dictionaries by its header."""
    head, *lines = [line.split("\t") for line in text.splitlines()]
    return [dict(zip(head, line, strict=True)) for line in lines]
