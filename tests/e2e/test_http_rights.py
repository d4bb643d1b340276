"""Who may ask what over HTTP: every route, as the node lists them, for every tag, in a vhost of one's own and in another.

RABBITMQ holds what RabbitMQ 3.10 was seen to decide for each of its routes; OURS are those that it has not. A route that is
in neither fails: somebody has to decide about it here.
"""
# SPDX-License-Identifier: Apache-2.0
import http.client
import json
import urllib.parse
from base64 import b64encode

import pytest

TAGS = ("", "management", "policymaker", "monitoring", "administrator")
#: whoever has one of these tags may ask
NEEDS = {
    "nobody": set(TAGS) | {None},
    "management": {"management", "policymaker", "monitoring", "administrator"},
    "monitoring": {"monitoring", "administrator"},
    "policymaker": {"policymaker", "administrator"},
    "administrator": {"administrator"},
}
#: and of these, in a vhost where the user has no permission
FOREIGN = {"none": set(TAGS), "visible": {"administrator"}, "monitored": {"administrator", "monitoring"}, "own": set()}

# method, path: needs, vhost
RABBITMQ = """
GET / none none
GET /api none none
GET /api/index.html nobody none
GET /api/auth nobody none
POST /api/login nobody none
GET /api/overview management none
GET /api/whoami management none
GET /api/cluster-name management none
PUT /api/cluster-name administrator none
GET /api/nodes monitoring none
GET /api/nodes/:node monitoring none
GET /api/nodes/:node/memory monitoring none
GET /api/extensions management none
GET /api/all-configuration administrator none
POST /api/all-configuration administrator none
GET /api/definitions administrator none
GET /api/definitions/:vhost administrator visible
POST /api/definitions administrator none
POST /api/definitions/:vhost administrator visible
GET /api/feature-flags administrator none
PUT /api/feature-flags/:name/enable administrator none
GET /api/parameters policymaker none
GET /api/parameters/:component policymaker none
GET /api/parameters/:component/:vhost policymaker visible
GET /api/parameters/:component/:vhost/:name policymaker visible
PUT /api/parameters/:component/:vhost/:name policymaker visible
DELETE /api/parameters/:component/:vhost/:name policymaker visible
GET /api/global-parameters policymaker none
GET /api/global-parameters/:name policymaker none
PUT /api/global-parameters/:name policymaker none
DELETE /api/global-parameters/:name policymaker none
GET /api/policies management none
GET /api/policies/:vhost management visible
GET /api/policies/:vhost/:policy policymaker visible
PUT /api/policies/:vhost/:policy policymaker visible
DELETE /api/policies/:vhost/:policy policymaker visible
GET /api/operator-policies management none
GET /api/operator-policies/:vhost management visible
GET /api/operator-policies/:vhost/:policy administrator visible
PUT /api/operator-policies/:vhost/:policy administrator visible
DELETE /api/operator-policies/:vhost/:policy administrator visible
GET /api/vhost-limits management none
GET /api/vhost-limits/:vhost management monitored
PUT /api/vhost-limits/:vhost/:limit administrator visible
DELETE /api/vhost-limits/:vhost/:limit administrator visible
GET /api/user-limits management none
GET /api/user-limits/:user management none
PUT /api/user-limits/:user/:limit administrator none
DELETE /api/user-limits/:user/:limit administrator none
GET /api/connections management none
GET /api/connections/:name management none
DELETE /api/connections/:name management none
GET /api/connections/:name/channels management none
GET /api/connections/username/:user management none
GET /api/vhosts/:vhost/connections management visible
GET /api/channels management none
GET /api/channels/:name management none
GET /api/vhosts/:vhost/channels management visible
GET /api/consumers management none
GET /api/exchanges management none
GET /api/exchanges/:vhost management visible
GET /api/exchanges/:vhost/:exchange management visible
PUT /api/exchanges/:vhost/:exchange management own
DELETE /api/exchanges/:vhost/:exchange management visible
GET /api/exchanges/:vhost/:exchange/bindings/source management visible
GET /api/exchanges/:vhost/:exchange/bindings/destination management visible
POST /api/exchanges/:vhost/:exchange/publish management own
GET /api/queues management none
GET /api/queues/:vhost management visible
GET /api/queues/:vhost/:queue management visible
PUT /api/queues/:vhost/:queue management own
DELETE /api/queues/:vhost/:queue management visible
DELETE /api/queues/:vhost/:queue/contents management visible
GET /api/queues/:vhost/:queue/bindings management visible
POST /api/queues/:vhost/:queue/get management own
POST /api/queues/:vhost/:queue/actions administrator visible
GET /api/bindings management none
GET /api/bindings/:vhost management visible
GET /api/bindings/:vhost/e/:exchange/q/:queue management visible
POST /api/bindings/:vhost/e/:exchange/q/:queue management own
GET /api/bindings/:vhost/e/:exchange/q/:queue/:props management visible
DELETE /api/bindings/:vhost/e/:exchange/q/:queue/:props management visible
GET /api/bindings/:vhost/e/:exchange/e/:destination management visible
POST /api/bindings/:vhost/e/:exchange/e/:destination management own
GET /api/bindings/:vhost/e/:exchange/e/:destination/:props management visible
DELETE /api/bindings/:vhost/e/:exchange/e/:destination/:props management visible
GET /api/vhosts management none
GET /api/vhosts/:vhost administrator visible
PUT /api/vhosts/:vhost administrator visible
DELETE /api/vhosts/:vhost administrator visible
GET /api/vhosts/:vhost/permissions administrator visible
GET /api/vhosts/:vhost/topic-permissions administrator visible
POST /api/vhosts/:vhost/start/:node administrator visible
GET /api/users administrator none
GET /api/users/:user administrator none
GET /api/users/without-permissions administrator none
POST /api/users/bulk-delete administrator none
PUT /api/users/:user administrator none
DELETE /api/users/:user administrator none
GET /api/users/:user/permissions administrator none
GET /api/users/:user/topic-permissions administrator none
GET /api/permissions administrator none
GET /api/permissions/:vhost/:user administrator visible
PUT /api/permissions/:vhost/:user administrator visible
DELETE /api/permissions/:vhost/:user administrator visible
GET /api/topic-permissions administrator none
GET /api/topic-permissions/:vhost/:user administrator visible
PUT /api/topic-permissions/:vhost/:user administrator visible
DELETE /api/topic-permissions/:vhost/:user administrator visible
DELETE /api/topic-permissions/:vhost/:user/:exchange administrator visible
GET /api/auth/attempts/:node monitoring none
GET /api/auth/attempts/:node/source monitoring none
DELETE /api/auth/attempts/:node monitoring none
GET /api/aliveness-test/:vhost management own
GET /api/healthchecks/node management none
GET /api/healthchecks/node/:node management none
POST /api/rebalance/queues administrator none
GET /api/health/checks/alarms management none
GET /api/health/checks/local-alarms management none
GET /api/health/checks/virtual-hosts management none
GET /api/health/checks/node-is-quorum-critical management none
GET /api/health/checks/node-is-mirror-sync-critical management none
GET /api/health/checks/certificate-expiration/:n/:unit management none
GET /api/health/checks/port-listener/:port management none
GET /api/health/checks/protocol-listener/:protocol management none
"""

# RabbitMQ shows a user's own consumers in any vhost; here the vhost has to be one that he may open. It answers 500 to those
# who are no administrators and close the connections of a user by name.
OURS = """
DELETE /api/connections/username/:user administrator none
GET /api/consumers/:vhost management visible
GET /api/hermes/routes management none
POST /api/hermes/snapshot administrator none
GET /api/hermes/maintenance monitoring none
PUT /api/hermes/maintenance administrator none
DELETE /api/hermes/maintenance administrator none
DELETE /api/hermes/session nobody none
GET /api/hermes/tail/:vhost/exchange/:exchange management own
GET /api/hermes/tail/:vhost/queue/:queue management own
GET /api/hermes/history/node monitoring none
GET /api/hermes/history/vhosts/:vhost management visible
GET /api/hermes/history/queues/:vhost/:queue management visible
GET /api/hermes/history/connections/:name management none
POST /api/hermes/exchanges/:vhost/:exchange/publish management own
POST /api/hermes/exchanges/:vhost/:exchange/route management visible
PUT /api/hermes/queues/:vhost/:queue/pause management own
DELETE /api/hermes/queues/:vhost/:queue/pause management own
GET /api/hermes/queues/:vhost/:queue/browse management own
POST /api/hermes/queues/:vhost/:queue/move management own
GET /api/hermes/dead-letters management none
GET /api/hermes/dead-letters/:vhost management visible
GET /api/hermes/dead-letters/:vhost/:queue management own
POST /api/hermes/dead-letters/:vhost/:queue/replay management own
GET /api/hermes/jobs management none
GET /api/hermes/jobs/:id management none
DELETE /api/hermes/jobs/:id management none
GET /api/hermes/rights management none
GET /api/hermes/rights/:vhost management visible
GET /api/hermes/rights/:vhost/queue/:queue management visible
GET /api/hermes/rights/:vhost/exchange/:exchange management visible
GET /healthz nobody none
GET /readyz nobody none
GET /metrics monitoring none
GET /metrics/per-object monitoring none
GET /metrics/detailed monitoring none
GET /console/:file nobody none
GET /api/health/checks/is-in-service management none
GET /api/health/checks/ready-to-serve-clients management none
GET /api/health/checks/below-node-connection-limit management none
GET /api/health/checks/chain management none
GET /api/health/checks/quorum-queues-without-elected-leaders/all-vhosts management none
GET /api/health/checks/quorum-queues-without-elected-leaders/vhost/:vhost management visible
"""


def decisions(*texts):
    rows = (line.split() for text in texts for line in text.strip().splitlines())
    return {(method, path): ("nobody" if needs == "none" else needs, vhost) for method, path, needs, vhost in rows}


DECIDED = decisions(RABBITMQ, OURS)


class Api:
    def __init__(self, node):
        self.port = node.management_port
        self.conn = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)

    def ask(self, method, path, body=None, user="guest", password="guest"):
        headers = {}
        if user is not None:
            headers["Authorization"] = "Basic " + b64encode(("%s:%s" % (user, password)).encode()).decode()
        self.conn.request(method, path, body if body is None else json.dumps(body), headers)
        answer = self.conn.getresponse()
        raw = answer.read()
        try:
            doc = json.loads(raw) if raw else None
        except ValueError:
            doc = None
        return answer.status, doc

    def must(self, *args, **kw):
        status, doc = self.ask(*args, **kw)
        assert 200 <= status < 300, (args, status, doc)
        return doc


@pytest.fixture
def api(node):
    api = Api(node())
    for vhost in ("own", "foreign"):
        api.must("PUT", "/api/vhosts/" + vhost)
    for tag in TAGS:
        api.must("PUT", "/api/users/u-" + tag, {"password": "pw", "tags": tag})
        api.must("PUT", "/api/permissions/own/u-" + tag, {"configure": ".*", "write": ".*", "read": ".*"})
    return api


def path_of(pattern, vhost):
    """The path with names that are not there, so that nothing is lost by asking."""
    pieces = [vhost if p == ":vhost" else "no-such" if p.startswith(":") else p for p in pattern.split("/")]
    return "/".join(urllib.parse.quote(p, safe="") for p in pieces)


def expected(row, tag, vhost):
    needs, right = DECIDED[row["method"], row["path"]]
    if tag not in NEEDS[needs]:
        return False
    return needs == "nobody" or vhost != "foreign" or tag in FOREIGN[right]


def test_every_route_is_decided(api):
    rows = api.must("GET", "/api/hermes/routes")
    undecided = {(r["method"], r["path"]) for r in rows} - set(DECIDED)
    assert not undecided, "decide about them here"
    assert len(rows) > 60 and all(len(r["help"]) > 3 for r in rows)


def test_every_route_for_every_tag(api):
    wrong = []
    for row in api.must("GET", "/api/hermes/routes"):
        for vhost in ("own", "foreign") if ":vhost" in row["path"] else ("own",):
            for tag in (None,) + TAGS:
                path = path_of(row["path"], vhost)
                if (row["method"], row["path"]) in (("DELETE", "/api/vhosts/:vhost"), ("POST", "/api/login")) and \
                        expected(row, tag, vhost):
                    continue        # the one would take the vhost away, the other wants its own form
                status, doc = api.ask(row["method"], path, {} if row["method"] in ("PUT", "POST") else None,
                                      user=None if tag is None else "u-" + tag, password="pw")
                refused = status == 401
                if refused and tag is not None and (doc or {}).get("error") != "not_authorised":
                    wrong.append((row["method"], path, tag, status, doc))
                if refused == expected(row, tag, vhost) or status >= 500 and "/checks/" not in path:
                    wrong.append((row["method"], path, tag, vhost, status, doc))
    assert not wrong, "\n".join(map(str, wrong))


def test_own_rights(api):
    """What a console asks, to offer only what will be done: the node decides what patterns say of a name."""
    api.must("PUT", "/api/permissions/own/u-management", {"configure": "^$", "write": "(?i)^ORDER\\.(?=a)", "read": "^(amq.default|r)$"})
    for vhost in ("v1", "v2"):
        api.must("PUT", "/api/vhosts/" + vhost)
        api.must("PUT", "/api/permissions/%s/u-management" % vhost, {"configure": "", "write": "", "read": ""})

    def ask(where):
        return api.must("GET", "/api/hermes/rights" + where, user="u-management", password="pw")

    rows = ask("")
    assert [(row["user"], row["vhost"], row["write"]) for row in rows] == \
        [("u-management", "own", "(?i)^ORDER\\.(?=a)"), ("u-management", "v1", ""), ("u-management", "v2", "")]
    page = ask("?pagination=true&page=2&page_size=2")
    assert (page["total_count"], page["items"]) == (3, rows[2:])
    assert ask("/own") == rows[0]
    assert ask("/own/queue/order.a") == {"configure": False, "write": True, "read": False}
    assert ask("/own/queue/order.b") == {"configure": False, "write": False, "read": False}
    assert ask("/own/exchange/amq.default") == {"configure": False, "write": False, "read": True}
    assert api.ask("GET", "/api/hermes/rights/foreign/queue/q", user="u-management", password="pw")[0] == 401
    # an administrator sees it, and may do nothing there
    status, doc = api.ask("GET", "/api/hermes/rights/foreign", user="u-administrator", password="pw")
    assert (status, doc) == (200, {"user": "u-administrator", "vhost": "foreign", "configure": "", "write": "", "read": ""})


def test_access_in_pages(api):
    """Users and permissions are whole lists, as in RabbitMQ, but where somebody asks for a page."""
    assert isinstance(api.must("GET", "/api/permissions?page=1&page_size=2"), list)
    for where, total in (("users", 7), ("permissions", 9), ("vhosts/own/permissions", 6), ("users/u-management/permissions", 1)):
        page = api.must("GET", "/api/%s?pagination=true&page=1&page_size=2" % where)
        assert (page["total_count"], len(page["items"])) == (total, min(total, 2)), where
    page = api.must("GET", "/api/permissions?pagination=true&page=1&page_size=5&name=u-mon&sort=vhost")
    assert [(row["user"], row["vhost"]) for row in page["items"]] == [("u-monitoring", "own")]


def test_default_accounts_open_with_another_password(api):
    """Everybody knows the first one: it is good for this machine only."""
    def place(name):
        return api.must("GET", "/api/users/" + name)["loopback_only"]

    assert place("guest") and place("admin") and not place("u-management")
    assert api.must("GET", "/api/whoami")["loopback_only"]
    old = api.must("GET", "/api/users/admin")
    for body in ({"password": "admin"}, {"password_hash": old["password_hash"], "hashing_algorithm": old["hashing_algorithm"]}):
        api.must("PUT", "/api/users/admin", dict(body, tags="administrator"))
        assert place("admin")
    api.must("PUT", "/api/users/admin", {"password": "another", "tags": "administrator"})
    assert not place("admin") and place("guest")
    who = api.must("GET", "/api/whoami", user="admin", password="another")
    assert (who["default_password"], who["loopback_only"]) == (False, False)


def test_limits_of_a_vhost_are_a_parameter(api):
    where = "/api/parameters/vhost-limits/own/limits"
    assert api.ask("DELETE", where)[0] == 404
    api.must("PUT", where, {"value": {"max-queues": 1000}})
    assert api.ask("DELETE", where, user="u-policymaker", password="pw")[0] == 401
    assert api.must("GET", where)["value"] == {"max-queues": 1000}
    api.must("DELETE", where)
    assert api.must("GET", "/api/vhost-limits/own") == []


def test_what_is_of_the_wrong_type_is_refused(api):
    for method, where, body in (("POST", "/api/users/bulk-delete", {"users": "u-management"}),
                                ("PUT", "/api/vhosts/odd", {"description": 5}),
                                ("PUT", "/api/vhosts/odd", {"default_queue_type": ["classic"]})):
        status, doc = api.ask(method, where, body)
        assert (status, doc["error"]) == (400, "bad_request"), where
    assert api.ask("GET", "/api/vhosts/odd")[0] == 404
