"""Fixtures that tests/e2e and tests/wire share."""
# SPDX-License-Identifier: Apache-2.0
import signal

import pytest

from node import SLOW, Node, sanitized

TEST_LIMIT = 120        # seconds


def pytest_collection_modifyitems(config, items):
    """Tests that measure are left out (not skipped) where the binary has sanitizers."""
    if not sanitized():
        return
    out = [item for item in items if item.get_closest_marker("release")]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


@pytest.fixture
def node(tmp_path):
    """Factory: node(settings="...", args=[...], env={...}) starts a node and waits until it is ready.

    With start=False it is made only. After the test each node that still runs is stopped, and has to
    end with status 0 and without a report of a sanitizer.
    """
    made = []

    def make(*args, start=True, ready=True, **kw):
        this = Node(tmp_path / ("node%d" % len(made)), *args, **kw)
        made.append(this)
        return this.start(ready) if start else this

    yield make
    try:
        for this in made:
            this.abort_conns()
            this.stop()
            this.check_reports()
    finally:
        for this in made:
            this.kill()


class TestLimit(Exception):
    __test__ = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    def expired(signum, frame):
        raise TestLimit("test took more than %d s" % (TEST_LIMIT * SLOW))

    old = signal.signal(signal.SIGALRM, expired)
    signal.alarm(TEST_LIMIT * SLOW)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, old)
