"""The checks of Debian's nagios-plugins-rabbitmq, each as it is: that all is well, and that it is not.

They send the password only to the realm that they know, and build the node's name themselves: rabbit@HOST.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import subprocess

import pytest
import requests

from node import SLOW, Node, clean_env, free_port
from programs import need

OK, WARNING, CRITICAL, UNKNOWN = range(4)
HOST = os.uname().nodename.partition(".")[0]
#: what there is on the node with traffic: queue `jobs`, ten messages, three of them out at a consumer
CHECKS = [
    # check, arguments, exit status, what it says
    ("aliveness", [], OK, "vhost: /"),
    ("aliveness", ["--vhost", "a b/c"], OK, "vhost: a b/c"),
    ("aliveness", ["--vhost", "none"], UNKNOWN, "Not found: none"),
    ("aliveness", ["-u", "stranger", "-p", "s"], UNKNOWN, "Access refused: /"),
    ("connections", [], OK, "connections OK (2) connections_notrunning OK (0)"),
    ("connections", ["-w", "1"], WARNING, "connections WARNING (2)"),
    ("connections", ["-c", "9,9,9,1"], CRITICAL, "send_rate CRITICAL"),
    ("connections", ["--clientuser", "worker", "-c", "1"], OK, "connections OK (1)"),
    ("connections", ["-u", "stranger", "-p", "s"], CRITICAL, "Access Refused"),
    ("objects", [], OK, "vhost=1;; exchange=14;; binding=2;; queue=2;; channel=1;;"),     # one less than there are
    ("objects", ["-u", "stranger", "-p", "s"], CRITICAL, "Access Refused : /api/vhosts"),
    ("overview", [], OK, "messages=10;; messages_ready=7;; messages_unacknowledged=3;;"),
    ("overview", ["-w", "9,-1,-1", "-c", "99,99,99"], WARNING, "messages WARNING (10)"),
    ("overview", ["-c", "99,6,99"], CRITICAL, "messages_ready CRITICAL (7)"),
    ("overview", ["-u", "nobody", "-p", "x"], CRITICAL, "Access Refused : /api/overview"),
    ("partition", ["-n", HOST], OK, "No Partitions"),
    ("partition", ["-n", "elsewhere"], UNKNOWN, "Not found"),
    ("queue", ["--queue", "jobs"], OK, "messages OK (10) messages_ready OK (7) messages_unacknowledged OK (3) consumers OK (1)"),
    ("queue", ["--queue", "jobs", "-w", "5"], WARNING, "messages WARNING (10)"),
    ("queue", ["--queue", "jobs", "-c", "99,99,2"], CRITICAL, "messages_unacknowledged CRITICAL (3)"),
    ("queue", ["--queue", "jobs", "-c", "-1,-1,-1,2:"], CRITICAL, "consumers CRITICAL (1)"),     # less than two
    ("queue", ["--queue", "none"], CRITICAL, "Not Found"),
    ("queue", ["--vhost", "a b/c", "--queue", "jobs"], CRITICAL, "Not Found"),
    ("server", ["-n", HOST], OK, "Process OK"),
    ("server", ["-n", HOST, "-w", "80,80,0,80", "-c", "90,90,90,90"], WARNING, "FD WARNING"),
    ("server", ["-n", HOST, "-c", "0,90,90,90"], CRITICAL, "Memory CRITICAL"),
    ("server", ["-n", "elsewhere"], UNKNOWN, "Not found: nodes/rabbit@elsewhere"),
    ("server", ["-n", HOST, "-u", "stranger", "-p", "s"], UNKNOWN, "Access refused"),
    ("shovels", [], CRITICAL, "API error: 404"),          # as RabbitMQ without that plugin
    ("watermark", ["-n", HOST], OK, "mem_alarm"),
    ("watermark", ["-n", "elsewhere"], UNKNOWN, "Not found"),
]
#: on a node whose disk is short
IN_ALARM = [
    ("watermark", ["-n", HOST], CRITICAL, "disk_free_alarm"),
    ("aliveness", [], OK, "vhost: /"),
    ("server", ["-n", HOST], OK, "Memory OK"),
]
NAMES = sorted({check for check, *_ in CHECKS})


def run(name, port, *arguments):
    """(exit status, output) of a check."""
    need(("check_rabbitmq_" + name, "nagios-plugins-rabbitmq"))
    done = subprocess.run(["check_rabbitmq_" + name, "-H", "127.0.0.1", "--port", str(port), *arguments],
                          capture_output=True, text=True, timeout=30 * SLOW, env=clean_env({"LC_ALL": "C"}))
    assert done.stderr == "", done.stderr
    return done.returncode, done.stdout


def put(node, path, **body):
    answer = requests.put(node.http_url + "/api/" + path, json=body, auth=("guest", "guest"), timeout=10 * SLOW)
    assert answer.status_code == 201, answer.text


def checked(node, check, arguments, status, said):
    code, output = run(check, node.management_port, *arguments)
    assert (code, said in output) == (status, True), (code, output)
    assert output.startswith("RABBITMQ_%s %s" % (check.upper(), ["OK", "WARNING", "CRITICAL", "UNKNOWN"][status]))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("nagios")


@pytest.fixture(scope="module")
def busy(folder):
    node = Node(folder / "busy").start()
    try:
        put(node, "vhosts/a%20b%2Fc")
        put(node, "users/stranger", password="s", tags="")
        put(node, "users/worker", password="w", tags="")
        put(node, "permissions/%2F/worker", configure="", write="", read=".*")
        chan = node.raw().channel()
        chan.declare("jobs", durable=True)
        for n in range(10):
            chan.publish("", "jobs", b"%d" % n)
        chan.declare("jobs", durable=True)
        consumer = node.raw(user="worker", password="w").channel()
        consumer.qos(3)
        consumer.consume("jobs")
        for n in range(3):
            assert consumer.deliver().body == b"%d" % n
        assert run("aliveness", node.management_port)[0] == OK      # its queue is there from now on
        yield node
        node.abort_conns()
        node.stop()
    finally:
        node.kill()


@pytest.fixture(scope="module")
def short(folder):
    """A node in a disk alarm."""
    node = Node(folder / "short", settings="disk: {min_free: 1000TiB}\n").start()
    try:
        node.raw().channel().sync()
        yield node
        node.abort_conns()
        node.stop()
    finally:
        node.kill()


def test_all_of_the_package_is_here():
    """A check that a later package has is to be added above."""
    need(("dpkg", "dpkg"))
    files = subprocess.run(["dpkg", "-L", "nagios-plugins-rabbitmq"], capture_output=True, text=True, check=True).stdout
    there = sorted(line.rpartition("check_rabbitmq_")[2] for line in files.split() if "/bin/check_rabbitmq_" in line)
    assert there == NAMES


@pytest.mark.parametrize("check,arguments,status,said", CHECKS, ids=lambda v: " ".join(v) if isinstance(v, list) else str(v))
def test_check(busy, check, arguments, status, said):
    checked(busy, check, arguments, status, said)


@pytest.mark.parametrize("check,arguments,status,said", IN_ALARM, ids=lambda v: " ".join(v) if isinstance(v, list) else str(v))
def test_check_in_an_alarm(short, check, arguments, status, said):
    checked(short, check, arguments, status, said)


@pytest.mark.parametrize("name", NAMES)
def test_nobody_there(name):
    arguments = ["--queue", "jobs"] if name == "queue" else []
    assert run(name, free_port(), *arguments)[0] == CRITICAL
