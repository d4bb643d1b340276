"""Folders that a node cannot use: another one has it, it may not be written, a later version wrote it."""
# SPDX-License-Identifier: Apache-2.0
import ctypes
import os
import pathlib
import shutil
import struct
import subprocess

import pika
import pytest

from node import BINARY, SLOW, Node, clean_env, hermes


def refused(done, *pieces):
    assert done.returncode == 1, (done.returncode, done.stderr)
    lines = [line for line in done.stderr.splitlines() if line.startswith("hermes server: ")]
    assert len(lines) == 1, done.stderr
    for piece in pieces:
        assert piece in lines[0], lines[0]


def test_a_folder_in_use(node):
    this = node()
    other = Node(this.folder / "other")
    done = hermes("server", "-d", this.data, "--port", other.port, "--management-port", other.management_port,
                  "--prometheus-port", "0")
    refused(done, str(this.data))
    this.raw().channel().declare("still", durable=True)


@pytest.mark.parametrize("made", [True, False], ids=["used before", "new"])
def test_a_folder_that_cannot_be_written(tmp_path, made):
    assert os.geteuid() == 0, "this test changes to another user"
    os.chmod(tmp_path, 0o755)
    for folder in tmp_path.parents:
        if folder.name.startswith("pytest-"):
            os.chmod(folder, 0o755)
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    binary = home / "hermes"
    shutil.copy(BINARY, binary)
    this = Node(tmp_path / "n")
    if made:
        this.start()
        this.stop()
    else:
        this.data.mkdir()
    os.chmod(this.folder, 0o755)
    done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", binary, "server", "-d",
                           this.data, "--port", str(this.port), "--management-port", str(this.management_port),
                            "--prometheus-port", "0"],
                          capture_output=True, text=True, timeout=30 * SLOW, env=clean_env(), cwd="/")
    refused(done, str(this.data), "ermission denied")


def test_a_newer_format(node):
    """As a later version would write it: the number, and a checksum that is right."""
    this = node()
    this.stop()
    path = this.data / "store"
    old = path.read_bytes()
    new = bytearray(old)
    new[8:12] = struct.pack("<I", struct.unpack("<I", old[8:12])[0] + 1)
    xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
    xxh3.restype, xxh3.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
    assert xxh3(old[:-8], len(old) - 8) == struct.unpack("<Q", old[-8:])[0]
    new[-8:] = struct.pack("<Q", xxh3(bytes(new[:-8]), len(new) - 8))
    path.write_bytes(new)
    done = hermes("server", "-d", this.data, "--port", this.port, "--management-port", this.management_port,
                  "--prometheus-port", "0")
    refused(done, "newer")
    path.write_bytes(old)
    this.start()


def test_the_folder_is_not_touched_by_check(tmp_path):
    assert hermes("server", "--check", "-d", tmp_path / "data").returncode == 0
    assert not pathlib.Path(tmp_path / "data").exists()


def start_on(this, host):
    """On a machine of this name, as far as the program can tell."""
    this.log_before = len(this.log)
    with open(this.log_file, "a") as log:
        this.process = subprocess.Popen(
            ["unshare", "--uts", "sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"', host, str(BINARY)] +
            [str(word) for word in this.args], env=this.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    this.await_ready()


def test_a_machine_of_another_name(node):
    """Nothing in the folder depends on it; the node's own name follows it unless one is set."""
    assert os.geteuid() == 0, "this test names the machine"
    this = node(start=False)
    start_on(this, "one")
    assert this.overview()["node"] == "hermes@one"
    this.http("/api/users/app", "PUT", {"password": "secret", "tags": ""})
    conn = this.pika()
    channel = conn.channel()
    channel.confirm_delivery()
    for queue in ("classic", "quorum"):
        channel.queue_declare(queue, durable=True, arguments={"x-queue-type": queue})
        channel.basic_publish("", queue, b"kept", pika.BasicProperties(delivery_mode=2))
    conn.close()
    this.stop()
    start_on(this, "two")
    assert this.overview()["node"] == "hermes@two"
    rows = {row["name"]: row for row in this.http("/api/queues")}
    assert {name: (row["node"], row["messages"]) for name, row in rows.items()} == {
        "classic": ("hermes@two", 1), "quorum": ("hermes@two", 1)}
    assert "app" in [user["name"] for user in this.http("/api/users")]
    conn = this.pika()
    assert [conn.channel().basic_get(queue, auto_ack=True)[2] for queue in rows] == [b"kept"] * 2
    conn.close()
