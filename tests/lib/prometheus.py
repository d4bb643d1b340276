"""Prometheus itself beside a node, with the files of contrib/prometheus; and its tools."""
# SPDX-License-Identifier: Apache-2.0
import json
import math
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from node import TOP, free_port, wait_for

RULES = TOP / "contrib" / "prometheus"


def tool(name):
    found = shutil.which(name)
    assert found, "%s is missing; on Debian: apt-get install prometheus" % name
    return found


class Prometheus:
    """Asks the node every second. `more` is put behind the jobs of prometheus.yml, `edit` has the last word on all of it."""

    def __init__(self, node, folder, more="", edit=lambda text: text):
        for file in ("hermes.rules.yml", "hermes.alerts.yml"):
            shutil.copy(RULES / file, folder)
        config = (RULES / "prometheus.yml").read_text() + more
        config = edit(config).replace("localhost:15692", "127.0.0.1:%d" % node.metrics_port)
        config = re.sub(r"interval: \w+", "interval: 1s", config).replace("timeout: 30s", "timeout: 1s")
        (folder / "prometheus.yml").write_text(config)
        self.log = folder / "log"
        self.port = free_port()
        self.process = subprocess.Popen(
            [tool("prometheus"), "--config.file=%s" % (folder / "prometheus.yml"), "--storage.tsdb.path=%s" % (folder / "data"),
             "--web.listen-address=127.0.0.1:%d" % self.port], stdout=subprocess.DEVNULL, stderr=open(self.log, "w"))

    def stop(self):
        self.process.kill()
        self.process.wait()

    def ask(self, path, **query):
        """What it answers; None before it listens. A query that is wrong is an error of the test."""
        assert self.process.poll() is None, self.log.read_text()[-2000:]
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/%s?%s" % (self.port, path, urllib.parse.urlencode(query)),
                                        timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as exc:
            text = exc.read().decode()
            assert exc.code not in (400, 422), (query, text)
            return None
        except OSError:
            return None

    def rows(self, expression):
        """The labels and finite values that there are now."""
        data = self.ask("query", query=expression)
        return [(r["metric"], float(r["value"][1])) for r in (data or {"result": []})["result"]
                if math.isfinite(float(r["value"][1]))]

    def await_targets(self, count):
        def asked():
            data = self.ask("targets")
            targets = data["activeTargets"] if data else []
            return len(targets) == count and all(t["health"] == "up" for t in targets)
        try:
            wait_for(asked, 60, "%d targets that answer" % count)
        except AssertionError:
            raise AssertionError("%s\n%s" % (self.ask("targets"), self.log.read_text()[-2000:])) from None
