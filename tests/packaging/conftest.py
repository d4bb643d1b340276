# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "lib"), str(TESTS / "conformance")]

from fixtures import *      # noqa: E402,F401,F403
