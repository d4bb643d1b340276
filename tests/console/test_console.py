"""The console in a real browser: each test of pages_*.mjs, by driver.mjs. CONSOLE_SHOTS names a folder for screenshots."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import threading

import pytest

import wire
from chromium import Browser
from node import Node, sanitized, wait_for

HERE = pathlib.Path(__file__).resolve().parent
LIST = subprocess.run(["node", str(HERE / "driver.mjs"), "--list"], check=True, capture_output=True, text=True, timeout=60)
#: Of a node with sanitizers: what only the console asks for, and all that is odd. Its pages are the same, and far slower.
SANITIZED = ("pages_charts.mjs", "pages_first.mjs", "pages_letters.mjs", "pages_live.mjs", "pages_nasty.mjs", "pages_rights.mjs")
PAGES = [(file, name) for file, name in json.loads(LIST.stdout) if file in SANITIZED or not sanitized()]


@pytest.fixture(scope="module")
def modules(tmp_path_factory):
    """node_modules with what package-lock.json names, fetched unless CONSOLE_MODULES has them."""
    if os.environ.get("CONSOLE_MODULES"):
        return pathlib.Path(os.environ["CONSOLE_MODULES"])
    folder = tmp_path_factory.mktemp("npm")
    for name in ("package.json", "package-lock.json"):
        (folder / name).write_text((HERE / name).read_text())
    subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=folder, check=True, timeout=300)
    return folder / "node_modules"


@pytest.fixture(scope="module")
def browser(modules):
    this = Browser(modules, os.environ.get("CONSOLE_SHOTS"))
    yield this
    this.close()


#: as in nasty.mjs
NASTY = "<img src=x onerror=\"window.pwned=1\">'\"><script>window.pwned=1</script>&amp;\u202e שלום 🐇 \\%2F"


def reader(node, name, queue, tag):
    """A connection of that name that reads a queue and keeps what it gets."""
    conn = wire.Conn("127.0.0.1", node.port, timeout=60)
    conn.handshake("guest", "guest", "/", properties={"connection_name": name, "product": "a test", "version": "1"})
    chan = conn.channel()
    chan.declare(queue)
    chan.call("basic.consume", queue=queue, consumer_tag=tag)
    return conn


@pytest.fixture(scope="module")
def broker(tmp_path_factory):
    this = Node(tmp_path_factory.mktemp("console")).start()
    clients = [reader(this, "console reader", "console read", "console tag"), reader(this, NASTY, "console other", NASTY)]
    yield this
    for client in clients:
        client.close()
    try:
        this.stop()
    finally:
        this.kill()


@pytest.mark.parametrize("file,name", PAGES, ids=lambda v: v.replace(" ", "-"))
def test_page(browser, broker, file, name):
    error = browser.run(file=file, name=name, url="http://127.0.0.1:%d/" % broker.management_port, user="guest",
                        password="guest")
    assert error is None, error


def test_a_node_that_is_started_again(browser, tmp_path):
    """The page says that the node is gone, goes on when it is back, and asks for the login that went with it."""
    this = Node(tmp_path).start()
    told = tmp_path / "shown", tmp_path / "seen"

    def restart():
        wait_for(told[0].exists, 60)
        this.stop()
        (tmp_path / "stopped").touch()
        wait_for(told[1].exists, 60)
        this.start()

    try:
        thread = threading.Thread(target=restart)
        thread.start()
        error = browser.run(file="pages_session.mjs", name="a node that is started again", folder=str(tmp_path),
                            url="http://127.0.0.1:%d/" % this.management_port, user="guest", password="guest")
        thread.join()
        assert error is None, error
        this.stop()
    finally:
        this.kill()


def test_under_a_path(browser, tmp_path):
    """management.path_prefix: every address that the page asks for is below it (the driver looks after that)."""
    this = Node(tmp_path, settings="management:\n  path_prefix: /mq/one\n").start()
    try:
        url = "http://127.0.0.1:%d/mq/one/" % this.management_port
        for file, name in (("pages_frame.mjs", "login and logout"), ("pages_first.mjs", "from the first login to a message in a bound queue")):
            error = browser.run(file=file, name=name, url=url, user="guest", password="guest")
            assert error is None, error
        this.stop()
    finally:
        this.kill()
