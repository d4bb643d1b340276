"""Fixtures that tests/e2e, tests/wire, tests/clients and tests/differential share."""
# SPDX-License-Identifier: Apache-2.0
import shutil
import signal

import pytest

from node import SLOW, Node, sanitized

TEST_LIMIT = 120        # seconds, for each of setup, call and teardown
KEPT = 5                # failed tests of a process whose data stays


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


class TestLimit(BaseException):
    """Not an Exception, so that no test takes it for one of its own."""
    __test__ = False


def limited(item, what):
    """For hook wrappers: ends what takes too long, a fixture as well as a test. Says it again if that is not heard."""
    limit = TEST_LIMIT * SLOW

    def expired(signum, frame):
        raise TestLimit("%s of %s took more than %d s" % (what, item.name, limit))

    old = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, limit, 10)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_setup(item):
    yield from limited(item, "setup")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    yield from limited(item, "call")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """What nodes wrote goes away with their test: the journals of a run would fill a small disk."""
    result = yield from limited(item, "teardown")
    if getattr(item, "failed", False) or result.excinfo:
        Leftovers.failed += 1
    elif "tmp_path" in getattr(item, "funcargs", {}):
        shutil.rmtree(item.funcargs["tmp_path"], ignore_errors=True)
    if nextitem is None or nextitem.path != item.path:
        Leftovers.remove()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    item.failed = getattr(item, "failed", False) or outcome.get_result().failed


class Leftovers:
    """Data of nodes that have ended, after each file of tests. What the first failed tests left stays to be looked at."""
    failed = seen = 0       # tests so far; as of the file before

    @classmethod
    def remove(cls):
        keep = cls.seen < cls.failed <= KEPT
        cls.seen = cls.failed
        for node in Node.made:
            if node.process is None and not keep:
                shutil.rmtree(node.data, ignore_errors=True)
        Node.made[:] = [node for node in Node.made if node.process is not None]
