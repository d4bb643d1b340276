# SPDX-License-Identifier: Apache-2.0
"""Scripted peers.  With WIRE_PORT set the tests talk to whatever broker listens there on 127.0.0.1."""
import os
import pathlib
import sys

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "lib"), str(TESTS / "conformance")]

import wire                 # noqa: E402
from fixtures import *      # noqa: E402,F401,F403
from node import Node       # noqa: E402


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Makes connections to one node that lives as long as the module."""
    port, this = os.environ.get("WIRE_PORT"), None
    if port is None:
        this = Node(tmp_path_factory.mktemp("node")).start()
        port = this.port

    def connect():
        return wire.Conn("127.0.0.1", int(port))

    yield connect
    if this is not None:
        try:
            this.stop()
        finally:
            this.kill()
