"""Data folders that earlier versions wrote (tests/e2e/formats) are whole for this one, and all that was in them is there."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import tarfile
import urllib.request

import pika
import pytest

from node import BINARY, SLOW, clean_env, hermes

FOLDER = pathlib.Path(__file__).resolve().parent / "formats"
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in FOLDER.glob("*.tar.xz"))


def unpack(name, to):
    with tarfile.open(FOLDER / (name + ".tar.xz")) as tar:
        tar.extractall(to)
    return to / "data", json.loads((FOLDER / (name + ".json")).read_text())


def test_there_are_some():
    assert len(NAMES) >= 4
    readme = (FOLDER / "README.md").read_text()
    assert all("| %s |" % name in readme for name in NAMES)


def everything(channel, queue):
    bodies = []
    while True:
        method, _, body = channel.basic_get(queue, auto_ack=True)
        if method is None:
            return bodies
        bodies.append((body.decode(), method.redelivered))


@pytest.mark.parametrize("name", NAMES)
def test_folder_of_an_earlier_version(node, name):
    this = node(start=False, metrics=True)
    _, has = unpack(name, this.folder)
    done = hermes("check-data", this.data)
    assert done.returncode == 0 and "format: 1; " in done.stdout, done.stdout + done.stderr
    this.start()
    queues = {queue["name"]: queue for queue in this.http("/api/queues/%2F")}
    assert {queue: one["arguments"] for queue, one in queues.items()} == has["queues"]
    assert set(has["exchanges"]) <= {one["name"] for one in this.http("/api/exchanges/%2F")}
    bound = [(one["source"], one["destination"], one["routing_key"]) for one in this.http("/api/bindings/%2F")]
    assert {("topics", "plain", "a.#"), ("amq.direct", "dead", "dead"), ("topics", "spread", "b.*")} <= set(bound)
    for path in has["http"]:
        if path.endswith("/pause"):
            assert queues["empty"]["state"] == "paused"
            this.http(path, "DELETE")
        else:
            check_object(this, path)
    conn = this.pika()
    channel = conn.channel()
    for queue, bodies in has["messages"].items():
        got = everything(channel, queue)
        if queue == "long":
            assert [body for body, _ in got] == ["number %d" % i for i in range(bodies)]
        else:
            assert [body for body, _ in got] == bodies, queue
        if queue == "plain":
            assert [redelivered for _, redelivered in got] == [True, False, False]
    if has["deduplicates"]:     # the key is remembered
        channel.confirm_delivery()
        channel.basic_publish("", "once", b"again", pika.BasicProperties(message_id="m2", delivery_mode=2))
        assert everything(channel, "once") == []
    if has.get("delayed"):
        with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % this.metrics_port, timeout=60) as metrics:
            assert b"\nhermes_messages_delayed 1\n" in metrics.read()
    conn.close()


def check_object(this, path):
    """What was set by HTTP is there as it was set."""
    if "limits" in path:
        kind, owner, limit = path.split("/")[2:]
        (one,) = this.http("/api/%s/%s" % (kind, owner))
        assert limit in one["value"]
        return
    got = this.http(path)
    if path == "/api/users/app":
        assert got["tags"] == ["monitoring"]
        assert this.http("/api/whoami", user="app", password="secret")["name"] == "app"
    elif path == "/api/vhosts/shop":
        assert (got["description"], got["default_queue_type"]) == ("orders", "quorum")
    elif "policies" in path:
        assert got["pattern"] == "^empty$"
        assert this.http("/api/queues/%2F/empty")[
            "operator_policy" if "operator" in path else "policy"] == path.rpartition("/")[2]


# --------------------------------------------------------------------------
# hermes check-data
# --------------------------------------------------------------------------
def test_check_as_json(tmp_path):
    data, has = unpack("1-first", tmp_path)
    done = hermes("check-data", "--json", data)
    said = json.loads(done.stdout)
    assert (done.returncode, said["whole"], said["readable"], said["format"], said["newest_format"]) == (0, True, True, 1, 1)
    assert said["messages_in_journal"] + said["messages_in_segments"] == 1500 + sum(
        len(bodies) for queue, bodies in has["messages"].items() if queue != "long")
    assert said["segments"] >= 1 and said["records"] > 0 and said["damaged"] == 0


def test_progress_on_a_terminal(tmp_path):
    """On standard error if that is a terminal, and taken away at the end."""
    data, _ = unpack("1-first", tmp_path)
    ours, theirs = pty.openpty()
    done = subprocess.run([str(BINARY), "check-data", str(data)], env=clean_env(), stdout=subprocess.PIPE, stderr=theirs,
                          stdin=subprocess.DEVNULL, text=True, timeout=60 * SLOW)
    os.close(theirs)
    said = os.read(ours, 65536).decode()
    os.close(ours)
    assert done.returncode == 0 and "is whole" in done.stdout and "MiB read" not in done.stdout
    assert re.search(r"\rsegments: \d+ of \d+ MiB read \(\d+ %\)", said) and said.endswith("\r\x1b[K"), said


def damaged(data):
    """A bit of the first message of the chain is another one."""
    segment = next(path for path in sorted(data.glob("segments/**/*")) if path.is_file())
    with open(segment, "r+b") as file:
        file.seek(4096 + 60)
        byte = file.read(1)[0]
        file.seek(-1, 1)
        file.write(bytes([byte ^ 1]))


def test_check_of_a_damaged_folder(tmp_path):
    data, _ = unpack("1-first", tmp_path)
    damaged(data)
    before = sorted((str(path), path.read_bytes()) for path in data.rglob("*") if path.is_file())
    done = hermes("check-data", "--json", data)
    said = json.loads(done.stdout)
    assert (done.returncode, said["whole"], said["readable"]) == (1, False, True) and said["damaged"] > 0
    assert "is damaged" in done.stderr and any("messages are missing" in line for line in said["lines"])
    assert sorted((str(path), path.read_bytes()) for path in data.rglob("*") if path.is_file()) == before


def xxh3(data):
    function = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    function.restype, function.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t]
    return function(data, len(data))


def test_check_of_a_newer_format(tmp_path):
    """As a version to come writes it: the checksum is right, the number is not ours."""
    data, _ = unpack("1-first", tmp_path)
    raw = bytearray((data / "store").read_bytes())
    struct.pack_into("<I", raw, 8, 2)
    struct.pack_into("<Q", raw, 56, xxh3(bytes(raw[:56])))
    (data / "store").write_bytes(raw)
    done = hermes("check-data", data)
    assert done.returncode == 1
    assert "the data folder is of format 2, this version reads 1 and older" in done.stdout
    assert "cannot be checked" in done.stderr


def test_check_of_a_folder_in_use(node):
    this = node()
    done = hermes("check-data", "--json", this.data)
    assert (done.returncode, done.stdout) == (1, "") and "in use" in done.stderr


def test_check_of_no_data_folder(tmp_path):
    done = hermes("check-data", tmp_path)
    assert done.returncode == 1 and "is this data folder" not in done.stderr
    assert "is this a data folder?" in done.stdout
