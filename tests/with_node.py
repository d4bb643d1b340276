"""Runs a command beside a node of its own, for suites that talk to a broker that is there already.

Usage: with_node.py [--management] [--restart] COMMAND [ARGUMENT]...

AMQP_HOST and AMQP_PORT name the node, MGMT_PORT its HTTP API, PROM_PORT its metrics; without --management they
are 1 and 0, which keeps the conformance suite off them. Exit status: the command's, or 3 if the node did not start, did not end with status 0 after
SIGTERM, or left a report of a sanitizer in its log.

--restart: the command is pytest. Between two files of tests the node ends, by SIGTERM and by SIGKILL in
turn, and starts again with the same data folder and the same ports. Says how often, as its last line.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

LIB = pathlib.Path(__file__).resolve().parent / "lib"
sys.path.insert(0, str(LIB))
from node import SLOW, Node     # noqa: E402


class Restarts(threading.Thread):
    """Does what the plugin between_files.py asks for, for as long as that process lives."""

    def __init__(self, node):
        super().__init__(daemon=True)
        self.node = node
        self.count = 0
        self.error = None
        self.asked, self.ask = os.pipe()
        self.answered, self.answer = os.pipe()

    def call(self, command, env):
        """The exit status of the command."""
        path = os.pathsep.join(p for p in (str(LIB), env.get("PYTHONPATH")) if p)
        env.update(WITH_NODE_FDS="%d,%d" % (self.ask, self.answered), PYTHONPATH=path,
                   PYTEST_ADDOPTS="%s -p between_files" % env.get("PYTEST_ADDOPTS", ""))
        process = subprocess.Popen(command, env=env, pass_fds=(self.ask, self.answered))
        os.close(self.ask)
        os.close(self.answered)
        self.start()
        status = process.wait()
        self.join(60)
        if self.error is not None:
            raise AssertionError(self.error)
        print("with_node: the node was started again %d times" % self.count)
        return status

    def run(self):
        while os.read(self.asked, 1):
            try:
                if self.count % 2 == 0:
                    self.node.stop()
                else:
                    self.node.kill()
                    self.node.check_reports()
                self.node.start()
                self.count += 1
            except Exception as exc:        # said by the other thread
                self.error = "restart %d: %s" % (self.count + 1, exc)
                os.close(self.answer)
                return
            os.write(self.answer, b"+")


def main():
    command = sys.argv[1:]
    management = command[:1] == ["--management"]
    if management:
        del command[0]
    restart = command[:1] == ["--restart"]
    if restart:
        del command[0]
    if not command or command[0].startswith("-"):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="hermes-test-") as folder:
        node = Node(folder, metrics=management)
        try:
            node.start()
            env = dict(os.environ, AMQP_HOST="127.0.0.1", AMQP_PORT=str(node.port),
                       MGMT_PORT=str(node.management_port) if management else "1",
                       PROM_PORT=str(node.metrics_port))
            if SLOW > 1:
                env.setdefault("CONFORMANCE_TIMEOUT", "20")
                env.setdefault("CONFORMANCE_TEST_LIMIT", "240")
                env.setdefault("CONFORMANCE_HTTP_TIMEOUT", "60")
                env.setdefault("CONFORMANCE_STATS_TIMEOUT", "15")
            else:
                env.setdefault("CONFORMANCE_STATS_TIMEOUT", "3")    # nothing is late here
            if restart:
                status = Restarts(node).call(command, env)
            else:
                status = subprocess.call(command, env=env)
            alive = node.running()
            node.stop()
            if not alive:
                raise AssertionError("the node ended while the suite ran:\n" + node.log[-4000:])
        except AssertionError as exc:
            print("with_node: %s" % exc, file=sys.stderr)
            return 3
        finally:
            node.kill()
    return status


if __name__ == "__main__":
    sys.exit(main())
