"""Backups: `hermes snapshot` of a node under load, `hermes restore`, `hermes check-data`."""
# SPDX-License-Identifier: Apache-2.0
import hashlib
import os
import re
import threading

import pika

from node import SLOW, hermes, wait_for
from shell import at_terminal

PERSISTENT = pika.BasicProperties(delivery_mode=2)
#: small files and little memory, so that a few seconds see rolls, spills and segments
SETTINGS = "store: {journal_file_size: 1MiB, journal_max: 64MiB, queue_messages: 1024}\n"


class Publisher(threading.Thread):
    """Publishes numbered messages with confirms, one after the other, until it is told to stop."""

    def __init__(self, node, queue):
        super().__init__()
        self.queue = queue
        self.confirmed = 0
        self.going = True
        self.conn = node.pika()
        self.channel = self.conn.channel()
        self.channel.queue_declare(queue, durable=True)
        self.channel.confirm_delivery()

    def run(self):
        body = b"x" * 1000
        while self.going:
            self.channel.basic_publish("", self.queue, b"%08d" % self.confirmed + body, PERSISTENT)
            self.confirmed += 1
        self.conn.close()

    def stop(self):
        self.going = False
        self.join()


def drain(node, queue):
    """Numbers of all messages of a queue, in order."""
    conn = node.pika()
    channel = conn.channel()
    channel.basic_qos(prefetch_count=500)
    count = channel.queue_declare(queue, passive=True).method.message_count
    numbers = []
    for method, _, body in channel.consume(queue, inactivity_timeout=20 * SLOW):
        assert method is not None, "%d of %d messages came" % (len(numbers), count)
        numbers.append(int(body[:8]))
        channel.basic_ack(method.delivery_tag)
        if len(numbers) == count:
            break
    channel.cancel()
    assert channel.basic_get(queue)[0] is None
    conn.close()
    return numbers


def url(node):
    return {"HERMES_URL": node.http_url}


def test_snapshot_under_load_and_both_go_on(node, tmp_path):
    this = node(SETTINGS)
    publishers = [Publisher(this, "orders-%d" % i) for i in range(3)]
    for publisher in publishers:
        publisher.start()
    wait_for(lambda: min(p.confirmed for p in publishers) > 1500, 100, "a backlog")
    before = [p.confirmed for p in publishers]
    done = hermes("snapshot", tmp_path / "backup", env=url(this), timeout=60)
    assert done.returncode == 0, done.stderr
    after = [p.confirmed for p in publishers]
    restored = node(SETTINGS, start=False)
    done = hermes("restore", tmp_path / "backup", "-d", restored.data, timeout=60)
    assert done.returncode == 0, (done.stdout, done.stderr)
    restored.start()
    more = Publisher(restored, "orders-0")
    more.confirmed = 10**7
    more.start()
    wait_for(lambda: more.confirmed > 10**7 + 200, 30)
    more.stop()
    for publisher in publishers:
        publisher.stop()
    for i, publisher in enumerate(publishers):
        got = drain(restored, publisher.queue)
        old = [n for n in got if n < 10**7]
        assert before[i] <= len(old) <= after[i] + 1
        assert old == list(range(len(old)))
        if i == 0:
            assert got[len(old):] == list(range(10**7, more.confirmed))
        assert drain(this, publisher.queue) == list(range(publisher.confirmed))
    assert "snapshot written" in this.log


def sums(folder):
    out = {}
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            with open(path, "rb") as f:
                out[path] = (os.stat(path).st_mtime_ns, hashlib.sha256(f.read()).hexdigest())
    return out


def fill(this):
    conn = this.pika()
    channel = conn.channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    for i in range(300):
        channel.basic_publish("", "q", b"%08d" % i + b"y" * 1000, PERSISTENT)
    conn.close()


def test_check_data(node):
    this = node(SETTINGS)
    fill(this)
    done = hermes("check-data", this.data)
    assert done.returncode == 1 and "in use by another process" in done.stderr, done.stderr
    this.kill()
    before = sums(this.data)
    done = hermes("check-data", this.data)
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "300 messages" in done.stdout and "is whole" in done.stdout
    assert sums(this.data) == before
    # a byte of the first message's body, far below what was synced
    for path in sorted((this.data / "journal").iterdir()):
        data = bytearray(path.read_bytes())
        at = data.find(b"00000001" + b"y" * 100)
        if at >= 0:
            data[at + 50] ^= 1
            path.write_bytes(data)
            break
    else:
        raise AssertionError("the message is not in the journal")
    done = hermes("check-data", this.data)
    assert done.returncode == 1 and "is damaged" in done.stderr, (done.stdout, done.stderr)
    assert str(path.name) in done.stderr, done.stderr


def test_refusals(node, tmp_path):
    this = node(SETTINGS)
    fill(this)
    (tmp_path / "there").mkdir()
    done = hermes("snapshot", tmp_path / "there", env=url(this))
    assert done.returncode == 1 and "is there already" in done.stderr
    done = hermes("snapshot", tmp_path / "not" / "there", env=url(this))
    assert done.returncode == 1 and "is not there" in done.stderr
    done = hermes("snapshot", "relative", env=url(this), cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == "%s\n" % (tmp_path / "relative")
    done = hermes("restore", tmp_path / "relative", "-d", this.data)
    assert done.returncode == 1 and "in use" in done.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    done = hermes("restore", tmp_path / "relative", "-d", tmp_path / "full")
    assert done.returncode == 1 and "is not empty" in done.stdout + done.stderr
    (tmp_path / "relative" / "manifest").unlink()
    done = hermes("restore", tmp_path / "relative", "-d", tmp_path / "new")
    assert done.returncode == 1 and "manifest" in done.stdout + done.stderr


def test_progress_of_restoring(node, tmp_path):
    """On standard error if that is a terminal, and taken away at the end."""
    this = node(SETTINGS)
    done = hermes("snapshot", tmp_path / "backup", env=url(this))
    assert done.returncode == 0, done.stderr
    status, said = at_terminal(this, ["restore", tmp_path / "backup", "-d", tmp_path / "new"])
    assert status == 0 and re.search(rb"\r\d+ of \d+ MiB copied\x1b\[K\r\x1b\[K", said), said
    assert b"restored into" in said.splitlines()[-1]
    done = hermes("restore", tmp_path / "backup", "-d", tmp_path / "newer")
    assert (done.returncode, done.stderr) == (0, "") and "MiB" not in done.stdout
