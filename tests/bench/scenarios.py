#!/usr/bin/env python3
"""The fixed scenarios by which brokers, and versions of this one, are compared: hermes bench in several ways.

	tests/bench/scenarios.py [NAME...]			a node of its own; HERMES_BINARY is it, and the command
	tests/bench/scenarios.py --amqp URL [--pid PID] [NAME...]	another broker; with the id of its process also what it costs

SECONDS_EACH (default: 5) is how long each publishes, but for the backlog. One line for each: messages a second in and out,
latencies to delivery and confirm in milliseconds (median, 99 %), seconds of processor time of the broker per million messages
delivered, and MiB of its memory at the end of the scenario. What is wrong with the messages is said below. Exit status: 1 if one
failed. README.md says what each is.
"""
# SPDX-License-Identifier: Apache-2.0
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "lib"), str(TESTS / "conformance")]
from node import BINARY, Node, clean_env      # noqa: E402

SECONDS = int(os.environ.get("SECONDS_EACH", "5"))
WARM_UP = 2     # seconds, of those with a rate
MANY = ["--confirms", "0", "--in-flight", "100000"]     # not how fast a broker fills its memory
SAFE = ["--persistent"]

SCENARIOS = {
    "transient-16B": [*MANY, "--size", "16", "--no-ack"],
    "transient-256B": [*MANY, "--size", "256"],
    "transient-1KiB": [*MANY, "--size", "1KiB"],
    "transient-64KiB": ["--confirms", "0", "--in-flight", "1000", "--size", "64KiB"],
    "transient-confirmed": ["--in-flight", "100000"],
    "persistent-1000": [*SAFE, "--confirms", "1000"],
    "persistent-1": [*SAFE, "--confirms", "1"],
    "persistent-1-50p": [*SAFE, "--confirms", "1", "--publishers", "50"],
    "fanout-10": [*MANY, "--exchange-type", "fanout", "--queues", "10"],
    "topic-10": [*MANY, "--exchange-type", "topic", "--queues", "10", "--publishers", "10"],
    "100-queues": [*MANY, "--queues", "100", "--publishers", "100"],
    "rate-50000": ["--confirms", "0", "--rate", "50000"],
    "backlog-1000000": [*SAFE, "--confirms", "5000", "--backlog", "--count", "1000000"],
    "rate-10000-persistent": [*SAFE, "--rate", "10000", "--confirms", "10000", "--ack", "10"],
}
HEAD = ("scenario", "in/s", "out/s", "p50 ms", "p99 ms", "confirm", "p99 ms", "cpu s/M", "MiB")
ROW = "%-22s %9s %9s %8s %8s %8s %8s %8s %6s"


def cpu(pid):
    """Seconds of processor time of a process so far."""
    fields = pathlib.Path("/proc/%d/stat" % pid).read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid):
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith("VmRSS:"):
            return "%.0f" % (int(line.split()[1]) / 1024)
    return "-"


def times(figures):
    if not figures["count"]:
        return "-", "-"
    return "%.3f" % (figures["p50"] / 1000), "%.3f" % (figures["p99"] / 1000)


def run(name, url, pid):
    """Whether it went well."""
    words = [*SCENARIOS[name]]
    if "--count" not in words:
        words += ["--duration", "%ds" % SECONDS]
    before = cpu(pid) if pid else 0
    sent_before = 0
    if "--rate" in words:
        words += ["--warm-up", "%ds" % WARM_UP]
        sent_before = WARM_UP * int(words[words.index("--rate") + 1])
    done = subprocess.run([str(BINARY), "bench", "--amqp", url, "--json", *words], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, env=clean_env({}))
    if done.stdout:
        got = json.loads(done.stdout)
        cost = "%.2f" % ((cpu(pid) - before) * 1e6 / max(1, got["delivered"] + sent_before)) if pid else "-"
        print(ROW % (name, "%.0f" % got["published_per_s"], "%.0f" % got["delivered_per_s"], *times(got["latency_us"]),
                     *times(got["confirm_us"]), cost, memory(pid) if pid else "-"), flush=True)
        if got["unsent"]:
            print("    %d that were due did not get out: the latencies are too low" % got["unsent"])
    if done.returncode:
        print("    %s: %s" % (name, done.stderr.strip() or "exit status %d" % done.returncode), flush=True)
    return done.returncode == 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amqp")
    parser.add_argument("--pid", type=int)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    unknown = [name for name in asked.names if name not in SCENARIOS]
    if unknown:
        sys.exit("no such scenario: %s; there are %s" % (", ".join(unknown), ", ".join(SCENARIOS)))
    names = asked.names or list(SCENARIOS)
    print(ROW % HEAD, flush=True)
    if asked.amqp:
        return all([run(name, asked.amqp, asked.pid) for name in names])
    with tempfile.TemporaryDirectory() as folder:
        node = Node(folder).start()
        try:
            return all([run(name, node.amqp_url, node.pid) for name in names])
        finally:
            node.stop()


sys.exit(0 if main() else 1)
