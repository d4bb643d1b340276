"""Runs a command beside a node of its own, for suites that talk to a broker that is there already.

Usage: with_node.py COMMAND [ARGUMENT]...

AMQP_HOST and AMQP_PORT name the node; MGMT_PORT is 1, which keeps the conformance suite off the HTTP
API. Exit status: the command's, or 3 if the node did not start, did not end with status 0 after
SIGTERM, or left a report of a sanitizer in its log.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "lib"))
from node import SLOW, Node     # noqa: E402


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory(prefix="hermes-test-") as folder:
        node = Node(folder)
        try:
            node.start()
            env = dict(os.environ, AMQP_HOST="127.0.0.1", AMQP_PORT=str(node.port), MGMT_PORT="1")
            if SLOW > 1:
                env.setdefault("CONFORMANCE_TIMEOUT", "20")
                env.setdefault("CONFORMANCE_TEST_LIMIT", "240")
            status = subprocess.call(sys.argv[1:], env=env)
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
