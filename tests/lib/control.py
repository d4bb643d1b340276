"""A client in a process of its own that measures how a node serves others while a test loads it.

    with Control(node) as control:
        ...
    assert control.percentile(99) < 0.1

A thread of the test would measure the test's own interpreter instead.
"""
# SPDX-License-Identifier: Apache-2.0
import json
import pathlib
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve()
PAUSE = 0.002       # seconds between two round trips


class Control:
    def __init__(self, node):
        self.port = node.port
        self.times = []             # of the round trips in seconds, sorted, once it has ended

    def __enter__(self):
        self.process = subprocess.Popen([sys.executable, str(HERE), str(self.port)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            self.process.kill()
        said, _ = self.process.communicate("")
        if kind is None:
            assert self.process.returncode == 0, "the control client was not served"
            self.times = sorted(json.loads(said))
            assert self.times

    def percentile(self, percent):
        return self.times[min(len(self.times) - 1, int(len(self.times) * percent / 100))]


def measure(port):
    """Round trips until standard input ends; their times go to standard output."""
    import select
    sys.path.insert(0, str(HERE.parents[1] / "conformance"))
    import wire

    chan = wire.Conn("127.0.0.1", port, timeout=60).handshake("guest", "guest", "/").channel()
    queue = chan.declare(exclusive=True).queue
    print("ready", flush=True)
    times = []
    while True:
        began = time.perf_counter()
        chan.counts(queue)
        times.append(time.perf_counter() - began)
        if select.select([sys.stdin], [], [], PAUSE)[0]:
            break
    chan.conn.close()
    print(json.dumps(times))


if __name__ == "__main__":
    measure(int(sys.argv[1]))
