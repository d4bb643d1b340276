"""One Chromium, and the tests in it that driver.mjs runs."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import warnings

from node import SLOW

HERE = pathlib.Path(__file__).resolve().parent


class Browser:
    """For as many tests as there are. shots: a folder for screenshots; None: none are taken."""

    def __init__(self, modules, shots):
        command = ["node", str(HERE / "driver.mjs"), str(modules)]
        if shots:
            pathlib.Path(shots).mkdir(parents=True, exist_ok=True)
            command.append(str(shots))
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=dict(os.environ, CONSOLE_SLOW=str(SLOW)))

    def run(self, **order):
        """What was wrong, or None."""
        return self.ask(**order)["error"]

    def ask(self, **order):
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if answer.get("crashed"):
            warnings.warn("Chromium crashed in '%s', which was run once more" % order["name"])
        return answer

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(30 * SLOW)
        finally:
            self.process.kill()
