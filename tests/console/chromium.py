"""One Chromium, and the tests in it that driver.mjs runs."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess

from node import SLOW

HERE = pathlib.Path(__file__).resolve().parent


class Browser:
    """For as many tests as there are."""

    def __init__(self, modules, shots):
        shots.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(["node", str(HERE / "driver.mjs"), str(modules), str(shots)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=dict(os.environ, CONSOLE_SLOW=str(SLOW)))

    def run(self, **order):
        """What was wrong, or None."""
        return self.ask(**order)["error"]

    def ask(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30 * SLOW)
        finally:
            self.process.kill()
