# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lib"), str(HERE.parent / "conformance")]

from fixtures import *      # noqa: E402,F401,F403
