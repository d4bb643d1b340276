"""Fixtures for tests of the commands: one node for a module, and the commands against it."""
# SPDX-License-Identifier: Apache-2.0
import os
import pty
import select
import subprocess
import termios

import pytest

from node import BINARY, SLOW, Node, clean_env, hermes


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


def at_terminal(broker, words, answers=(), env=None, columns=0):
    """Runs hermes on a terminal and gives its answers to its prompts; the exit status and what the terminal shows. An answer
    that can be called is."""
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, columns))
    # in a session of its own, which Ctrl-C is for
    process = subprocess.Popen(["setsid", "--ctty", str(BINARY)] + [str(w) for w in words], stdin=slave, stdout=slave, stderr=slave,
                               env=clean_env({"HERMES_URL": broker.http_url, "HERMES_AMQP": broker.amqp_url, **(env or {})}))
    os.close(slave)
    said = b""

    def more(until):
        nonlocal said
        while until is None or until not in said:
            if not select.select([master], [], [], 120 * SLOW)[0]:
                process.kill()
                raise AssertionError("nothing more comes: %r" % said)
            try:
                piece = os.read(master, 65536)
            except OSError:         # the other side is closed
                return
            if not piece:
                return
            said += piece

    for prompt, answer in answers:
        more(prompt)
        if callable(answer):
            answer()
        else:
            os.write(master, answer)
    more(None)
    os.close(master)
    return process.wait(30 * SLOW), said
