#!/usr/bin/env python3
"""What tools ask a node for again and again, as they were seen to:

	pollers.py MANAGEMENT-PORT METRICS-PORT NAME

Repeats the requests of one poller until standard input ends; then prints, as JSON, the times of each in seconds.
"""
# SPDX-License-Identifier: Apache-2.0
import base64
import http.client
import json
import select
import sys
import time

AUTH = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
ZIPPED = dict(AUTH, **{"Accept-Encoding": "gzip"})
OVERVIEW = "/api/overview?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5"
METRICS = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1",
           "Accept-Encoding": "gzip"}

#: name: [(seconds between two, headers, [path])]; /metrics is at another port
POLLERS = {
    # watch -n 5 rabbitmqadmin list ...
    "rabbitmqadmin": [(5, AUTH, ["/api/queues?columns=vhost,name,messages,consumers", "/api/connections?columns=name,user,state",
                                 "/api/overview"])],
    # RabbitMQ's own pages: overview, queues and channels in three windows
    "RabbitMQ's pages": [(5, ZIPPED, [
        OVERVIEW, "/api/vhosts", "/api/nodes", "/api/queues?page=1&page_size=100&name=&use_regex=false&pagination=true",
        "/api/channels?page=1&page_size=100&name=&use_regex=false&pagination=true",
        "/api/queues?page=1&page_size=100&name=&use_regex=false&pagination=true&sort=messages&sort_reverse=true"])],
    # Prometheus: the node, its objects, and rabbitmq_exporter
    "Prometheus": [(15, METRICS, ["/metrics", "/metrics/per-object"]),
                   (15, ZIPPED, ["/api/" + what + "?sort=" for what in ("exchanges", "nodes", "overview", "queues", "connections")])],
    # KEDA with a hundred queues; Datadog's check
    "KEDA and Datadog": [(1, ZIPPED, ["/api/queues/%%2F/q%05d" % n for n in (1, 1000, 3000)] +
                          ["/api/queues/%2F?page=1&use_regex=true&pagination=false&name=^q0001.$&page_size=100"]),
                         (15, ZIPPED, ["/api/overview", "/api/nodes", "/api/vhosts", "/api/queues", "/api/connections",
                                       "/api/aliveness-test/%2F"])],
}


class Asker:
    """Connections that are kept, and how long each answer took."""

    def __init__(self, port, metrics_port):
        self.ports = (port, metrics_port)
        self.conns = {}
        self.times = {}

    def ask(self, path, headers):
        port = self.ports[path.startswith("/metrics")]
        if port not in self.conns:
            self.conns[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        began = time.monotonic()
        self.conns[port].request("GET", path, headers=headers)
        answer = self.conns[port].getresponse()
        size = 0
        while part := answer.read(1 << 20):
            size += len(part)
        if answer.status != 200:
            raise SystemExit("%s: %d" % (path, answer.status))
        self.times.setdefault(path, []).append(time.monotonic() - began)
        return size


def stopped(seconds):
    return select.select([sys.stdin], [], [], max(0, seconds))[0]


def main():
    asker = Asker(int(sys.argv[1]), int(sys.argv[2]))
    rounds = [[time.monotonic(), every, headers, paths] for every, headers, paths in POLLERS[sys.argv[3]]]
    while not stopped(min(r[0] for r in rounds) - time.monotonic()):
        for this in rounds:
            if this[0] > time.monotonic():
                continue
            for path in this[3]:
                asker.ask(path, this[2])
                if stopped(0):
                    break
            this[0] = max(this[0] + this[1], time.monotonic())
    print(json.dumps(asker.times))


if __name__ == "__main__":
    main()
