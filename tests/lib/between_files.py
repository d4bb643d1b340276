"""A plugin of pytest that with_node.py --restart loads: after each file of tests it asks for another node."""
# SPDX-License-Identifier: Apache-2.0
import os

import pytest

ASK, ANSWER = (int(fd) for fd in os.environ["WITH_NODE_FDS"].split(","))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_teardown(item, nextitem):
    yield
    if nextitem is None or nextitem.path == item.path:
        return
    os.write(ASK, b"?")
    if os.read(ANSWER, 1) != b"+":
        pytest.exit("the node was not started again after %s" % item.path.name, returncode=3)
