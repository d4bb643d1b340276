"""How long people wait for the console where there is much to show, in a real browser on the same machine."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from node import Node
from test_console import browser, modules   # noqa: F401
from wire import FRAME_METHOD, enc_frame, enc_method

MANY = 50000
#: milliseconds
BOUNDS = {"first": 300, "list": 200}
PART = 1000


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """A node with 50,000 queues, 2,000 consumers, and messages in every hundredth queue: as many as its number says, below 50."""
    node = Node(tmp_path_factory.mktemp("many"), settings="limits:\n  queues: 100000\n").start()
    try:
        chan = node.raw().channel()
        for first in range(0, MANY, PART):
            chan.conn.send_raw(b"".join(
                enc_frame(FRAME_METHOD, chan.number, enc_method("queue.declare", queue="q%05d" % n, nowait=True))
                for n in range(first, first + PART)))
            chan.declare("q%05d" % first)
        for n in range(0, 5000, 100):
            chan.conn.send_raw(b"".join(chan.encode_publish("", "q%05d" % n, b"x") for _ in range(n // 100)))
        reader = chan.conn.channel()
        reader.conn.send_raw(b"".join(
            enc_frame(FRAME_METHOD, reader.number, enc_method("basic.consume", queue="q%05d" % (n * 20), nowait=True,
                                                              consumer_tag="tag%d" % n)) for n in range(1, 2000) if n % 5))
        reader.call("basic.consume", queue="q00000", consumer_tag="last")
        yield node
        node.abort_conns()
        node.stop()
    finally:
        node.kill()


@pytest.mark.release
def test_lists_and_first_views(browser, many):  # noqa: F811
    answer = browser.ask(file="speed_lists.mjs", name="lists and first views", url="http://127.0.0.1:%d/" % many.management_port,
                         user="guest", password="guest", bounds=BOUNDS)
    assert answer["error"] is None, answer["error"]
    took = answer["value"]
    print(", ".join("%s %.0f ms" % item for item in took.items()))
    assert all(took.pop(page) < BOUNDS["first"] for page in ("login page", "overview"))
    assert all(ms < BOUNDS["list"] for ms in took.values())
