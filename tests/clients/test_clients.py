"""Real client libraries, one program for each, against a real node through a proxy.

README.md says what the programs do. All of them run beside each other, a few at a time, because what takes
long in them is waiting for heartbeats; each test then looks at the outcome of one.

CLIENTS_BROKER=HOST:PORT runs them against a broker that is there already, for instance RabbitMQ.
"""
# SPDX-License-Identifier: Apache-2.0
import concurrent.futures
import os
import queue
import subprocess
import threading
import time

import pytest

from certs import Authority
from node import SLOW, Node, clean_env, free_port
from programs import PROGRAMS, STEPS, TLS
from proxy import Proxy

AT_ONCE = 8
TIME_LIMIT = 90         # seconds for a program, times SLOW
#: tls: CLIENTS_CA is the authority, and what is cut and split are records
SHAPES = {"plain": {}, "tls": {"split": 7}, "split": {"split": 7}, "slow": {"delay": 0.002, "split": 500}}
RUNS = [(name, shape) for shape in ("plain", "split") for name in PROGRAMS] + [("go", "slow"), ("rabbitmq-c", "slow")]
if not os.environ.get("CLIENTS_BROKER"):
    RUNS += [(name, "tls") for name in TLS]
BROKER = os.environ.get("CLIENTS_BROKER")


class Outcome:
    def __init__(self):
        self.steps = []
        self.output = []
        self.status = None
        self.problem = None
        self.seconds = 0.0


def drive(command, env, proxy, outcome):
    """Run a program to its end, and do to its connections what it asks for."""
    process = subprocess.Popen(command + ["127.0.0.1", str(proxy.port)], env=clean_env(env), text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    lines = queue.Queue()

    def read():
        for text in process.stdout:
            lines.put(text)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    deadline = time.monotonic() + TIME_LIMIT * SLOW
    try:
        while True:
            line = lines.get(timeout=max(0.0, deadline - time.monotonic()))
            if line is None:
                break
            outcome.output.append(line)
            line = line.strip()
            if line == "cut":
                proxy.cut()
            elif line == "freeze":
                proxy.freeze()
            elif line.startswith("ok "):
                outcome.steps.append(line[3:])
        outcome.status = process.wait(timeout=10 * SLOW)
    except (queue.Empty, subprocess.TimeoutExpired):
        outcome.problem = "took more than %d s" % (TIME_LIMIT * SLOW)
    finally:
        process.kill()
        process.wait()


def run(name, shape, folder):
    """One program against a node of its own."""
    outcome = Outcome()
    start = time.monotonic()
    program = PROGRAMS[name]
    node = None
    try:
        command = program.build(folder)
        env = dict(program.env)
        if BROKER:
            host, _, port = BROKER.rpartition(":")
            target = (int(port), host)
        elif shape == "tls":
            authority = Authority(folder / "certs")
            target = (free_port(),)
            node = Node(folder / "node", "tls: {port: %d, certificate: %s, key: %s}\n" % (
                target + authority.server())).start()
            env["CLIENTS_CA"] = str(authority.ca)
        else:
            node = Node(folder / "node").start()
            target = (node.port,)
        with Proxy(*target, **SHAPES[shape]) as proxy:
            drive(command, env, proxy, outcome)
        if node:
            assert node.running(), "the node ended:\n" + node.log[-4000:]
            node.stop()
    except Exception as exc:            # whatever it is, the test of this program says it
        outcome.problem = "%s%s" % (outcome.problem + "\n" if outcome.problem else "", exc)
    finally:
        if node:
            node.kill()
    outcome.seconds = time.monotonic() - start
    return outcome


@pytest.fixture(scope="module")
def outcomes(request, tmp_path_factory):
    """Futures of all programs that are to be tested, by name and shape of the network."""
    wanted = [item.callspec.params for item in request.session.items
              if getattr(item, "originalname", "") == "test_client"]
    folder = tmp_path_factory.mktemp("clients")
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        yield {(each["name"], each["shape"]): pool.submit(
            run, each["name"], each["shape"], folder / ("%(name)s-%(shape)s" % each)) for each in wanted}


@pytest.mark.parametrize("name, shape", RUNS)
def test_client(outcomes, name, shape):
    outcome = outcomes[name, shape].result()
    output = "".join(outcome.output)[-8000:]
    missing = [step for step in STEPS if step not in PROGRAMS[name].without]
    assert outcome.problem is None, "%s\n%s" % (outcome.problem, output)
    assert outcome.status == 0, output
    assert outcome.steps == missing, output
