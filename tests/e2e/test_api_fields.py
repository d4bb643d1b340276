"""Every field that tools rely upon (tests/conformance-mgmt/ENDPOINTS.md) is there and has its type.

Clients in Go and Rust decode documents into structs, and refuse a whole answer for one field of another type.
"""
# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
from urllib.parse import quote

import pytest
import requests

from node import SLOW, Node, wait_for

ENDPOINTS = pathlib.Path(__file__).resolve().parents[1] / "conformance-mgmt" / "ENDPOINTS.md"

# s text, i integer, n number, b bool, o object, l list, * any; ?: null as well; a name alone goes on with the type of the
# one before. `a.{b,c}` are a.b and a.c, `a[]` is each item of the list a, which is not empty.
DELIVERY = "deliver,deliver_no_ack,deliver_get,get,get_no_ack,get_empty,ack,redeliver"
RATES = "_details.rate:n"


def with_rates(path, names):
    return " ".join("%s.%s:i %s.%s%s" % (path, n, path, n, RATES) for n in names.split(","))


QUEUE = ("name:s vhost type node state durable:b auto_delete exclusive arguments:o messages:i messages_ready "
         "messages_unacknowledged message_bytes message_bytes_ready message_bytes_unacknowledged message_bytes_ram "
         "message_bytes_persistent message_bytes_paged_out messages_persistent messages_ram messages_paged_out "
         "messages_ready_ram messages_unacknowledged_ram consumers memory "
         "messages_details.rate:n messages_ready_details.rate messages_unacknowledged_details.rate "
         "consumer_utilisation:n consumer_capacity policy:s? operator_policy effective_policy_definition:o "
         "exclusive_consumer_tag:s? single_active_consumer_tag head_message_timestamp:i? head_arrived "
         + with_rates("message_stats", "publish," + DELIVERY))
EXCHANGE = ("name:s vhost type durable:b auto_delete internal arguments:o "
            + with_rates("message_stats", "publish_in,publish_out"))
BINDING = "source:s destination destination_type routing_key vhost properties_key arguments:o"
CONNECTION = ("name:s node user vhost state type protocol host peer_host auth_mechanism user_provided_name port:i peer_port "
              "channels channel_max frame_max timeout connected_at recv_oct recv_cnt send_oct send_cnt send_pend ssl:b "
              "recv_oct_details.rate:n send_oct_details.rate client_properties:o client_properties.capabilities")
CHANNEL = ("number:i prefetch_count global_prefetch_count consumer_count messages_unacknowledged messages_unconfirmed "
           "messages_uncommitted acks_uncommitted confirm:b transactional state:s user vhost node name "
           "connection_details.{name,peer_host} connection_details.peer_port:i")
CONSUMER = ("consumer_tag:s activity_status ack_required:b exclusive active prefetch_count:i consumer_timeout arguments:o "
            "queue.{name,vhost}:s channel_details.{name,connection_name,node,user,peer_host} "
            "channel_details.{number,peer_port}:i")
VHOST = ("name:s description tags:l tracing:b cluster_state:o recv_oct:i send_oct messages messages_ready "
         "messages_unacknowledged messages_details.rate:n recv_oct_details.rate send_oct_details.rate "
         + with_rates("message_stats", "publish,confirm,return_unroutable,drop_unroutable," + DELIVERY))
NODE = ("name:s type os_pid running:b mem_alarm disk_free_alarm being_drained mem_used:i mem_limit disk_free disk_free_limit "
        "fd_used fd_total sockets_used sockets_total proc_used proc_total uptime run_queue processors partitions:l "
        "cluster_links applications auth_mechanisms exchange_types contexts enabled_plugins "
        "io_read_avg_time:n io_write_avg_time io_sync_avg_time io_seek_avg_time")
OVERVIEW = ("rabbitmq_version:s management_version erlang_version cluster_name node "
            "object_totals.{connections,channels,queues,exchanges,consumers}:i "
            "listeners[].{node,protocol,ip_address}:s listeners[].port:i contexts[].port:s exchange_types[].name:s churn_rates:o "
            + with_rates("queue_totals", "messages,messages_ready,messages_unacknowledged") + " "
            + with_rates("message_stats", "publish,confirm,return_unroutable,drop_unroutable," + DELIVERY))
PERMISSION = "user:s vhost configure write read"
POLICY = "vhost:s name pattern apply-to priority:i definition:o"

#: row of the table (the first path in it): what to ask, what each object in the answer has
DOCUMENTS = {
    "overview": (["overview"], OVERVIEW),
    "nodes": (["nodes", "nodes/{node}"], NODE),
    "nodes/{n}/memory": (["nodes/{node}/memory", "nodes/{node}?memory=true"],
                         "memory.total.{rss,allocated,erlang}:i memory.strategy:s"),
    "queues": (["queues", "queues/%2F", "queues?page=1&page_size=10:items"], QUEUE.split(" message_stats")[0]),
    "queues/{v}/{n}": (["queues/%2F/work"], QUEUE + " consumer_details:l"),
    "exchanges": (["exchanges/%2F/fan"], EXCHANGE + " incoming:l outgoing"),
    "bindings": (["bindings", "bindings/%2F", "bindings/%2F/e/fan/q/work", "bindings/%2F/e/fan/e/amq.topic",
                  "bindings/%2F/e/fan/q/work/k", "queues/%2F/work/bindings", "exchanges/%2F/fan/bindings/source",
                  "exchanges/%2F/amq.topic/bindings/destination"], BINDING),
    "connections": (["connections", "vhosts/%2F/connections", "connections/{connection}"], CONNECTION),
    "connections/username/{u}": (["connections/username/guest"], "name:s node user vhost"),
    "connections/{n}/channels": (["connections/{connection}/channels", "channels", "vhosts/%2F/channels",
                                  "channels/{connection} (1)"], CHANNEL),
    "consumers": (["consumers", "consumers/%2F"], CONSUMER),
    "vhosts": (["vhosts", "vhosts/%2F"], VHOST),
    "users": (["users", "users/guest"], "name:s password_hash hashing_algorithm tags:l limits:o"),
    "permissions": (["permissions", "permissions/%2F/guest", "users/guest/permissions", "vhosts/%2F/permissions"],
                    PERMISSION),
    "topic-permissions": (["topic-permissions", "topic-permissions/%2F/guest", "users/guest/topic-permissions",
                           "vhosts/%2F/topic-permissions"], "exchange:s user vhost write read"),
    "policies": (["policies", "policies/%2F", "policies/%2F/p", "operator-policies", "operator-policies/%2F",
                  "operator-policies/%2F/op"], POLICY),
    "global-parameters": (["global-parameters", "global-parameters/some"], "name:s value:*"),
    "whoami": (["whoami"], "name:s tags:l"),
}
#: fields that not every object of these has at every moment, but one of them now
SOMETIMES = {"queues/%2F/work": ["idle_since"], "channels": ["idle_since", "message_stats"],
             "queues/%2F/private": ["owner_pid_details"]}

IS = {"s": lambda v: isinstance(v, str), "i": lambda v: type(v) is int,
      "n": lambda v: type(v) in (int, float), "b": lambda v: type(v) is bool,
      "o": lambda v: isinstance(v, dict), "l": lambda v: isinstance(v, list), "*": lambda v: True}


def expand(text):
    """(path, type) of each field in the notation above."""
    kind = "s"
    for word in text.split():
        path, _, given = word.partition(":")
        kind = given or kind
        found = re.fullmatch(r"(.*)\{(.*)\}(.*)", path)
        for part in found.group(2).split(",") if found else [None]:
            yield (found.group(1) + part + found.group(3) if found else path), kind


def values(doc, path):
    if not path:
        return [doc]
    name, _, rest = path.partition(".")
    is_list = name.endswith("[]")
    name = name[:-2] if is_list else name
    assert isinstance(doc, dict) and name in doc, "no %r in %s" % (name, sorted(doc) if isinstance(doc, dict) else doc)
    if not is_list:
        return values(doc[name], rest)
    assert doc[name], "%s is empty" % name
    return [v for item in doc[name] for v in values(item, rest)]


def check(doc, fields):
    for path, kind in expand(fields):
        for value in values(doc, path):
            if kind.endswith("?") and value is None:
                continue
            assert IS[kind[0]](value), "%s is %r, not %s" % (path, value, kind)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    node = Node(tmp_path_factory.mktemp("fields")).start()
    session = requests.Session()
    session.trust_env = False
    session.auth = ("guest", "guest")

    def ask(path, method="GET", **kw):
        path = path.format(node=quote(ask.node, safe=""), connection=quote(ask.connection, safe=""))
        answer = session.request(method, node.http_url + "/api/" + path, timeout=20 * SLOW, **kw)
        assert answer.ok, (method, path, answer.status_code, answer.text[:200])
        return answer.json() if answer.content else None

    ask.node = ask.connection = ""
    try:
        conn = node.pika(client_properties={"connection_name": "fields"})
        stage(conn, ask)
        yield ask
        conn.close()
        node.stop()
    finally:
        node.kill()


def stage(conn, ask):
    """One of everything."""
    ask.node = ask("overview")["node"]
    ask("policies/%2F/p", "PUT", json={"pattern": "^work", "definition": {"max-length": 1000}, "priority": 1})
    ask("operator-policies/%2F/op", "PUT", json={"pattern": "^work", "definition": {"message-ttl": 3600000}})
    ask("topic-permissions/%2F/guest", "PUT", json={"exchange": "amq.topic", "write": ".*", "read": ".*"})
    ask("global-parameters/some", "PUT", json={"value": {"a": 1}})
    ch = conn.channel()
    ch.confirm_delivery()
    ch.queue_declare("work", durable=True, arguments={"x-max-length": 5000})
    ch.queue_declare("private", exclusive=True)
    ch.exchange_declare("fan", "fanout")
    ch.queue_bind("work", "fan", "k")
    ch.exchange_bind("amq.topic", "fan", "k")
    for _ in range(5):
        ch.basic_publish("fan", "k", b"x")
    ch.basic_publish("", "nowhere", b"x")
    ch.basic_get("work")
    ch.basic_get("work", auto_ack=True)
    ch.basic_consume("work", lambda *a: None, consumer_tag="tag", arguments={"x-priority": 1})
    conn.process_data_events(0.1)
    ask.connection = wait_for(lambda: ask("connections"), 5, "the connection")[0]["name"]


@pytest.mark.parametrize("row", sorted(DOCUMENTS))
def test_fields_and_types(api, row):
    paths, fields = DOCUMENTS[row]
    for path in paths:
        path, _, part = path.partition(":") if path.endswith(":items") else (path, "", "")
        doc = api(path)
        docs = doc[part] if part else doc if isinstance(doc, list) else [doc]
        assert docs, path
        for one in docs:
            check(one, fields)


def test_fields_that_come_and_go(api):
    for path, names in SOMETIMES.items():
        def there():
            doc = api(path)
            return any(all(n in one for n in names) for one in (doc if isinstance(doc, list) else [doc]))
        wait_for(there, 15, "%s in %s" % (names, path))


def test_nothing_that_tools_rely_upon_is_left_out():
    """The lists above have every name that the document has."""
    text = ENDPOINTS.read_text()
    rows = re.findall(r"(?m)^\| [ABC] \| `GET /api/([^`?\[]+?)[`\[?](.*)$", text[text.index("## Reading state"):text.index("## Health")])
    assert len(rows) > 15
    for first, rest in rows:
        if first not in DOCUMENTS:
            assert first in ("vhosts/{v}/permissions", "parameters", "vhost-limits", "auth"), first
            continue
        have = {part.rstrip("[]") for path, _ in expand(DOCUMENTS[first][1]) for part in path.split(".")}
        have |= {n for names in SOMETIMES.values() for n in names}
        fields = rest.split(" | ")[1]
        wanted = set()
        for code in re.findall(r"`([^`]+)`", fields):
            found = re.fullmatch(r"(?:[\w.\[\]]*\.)?\{(.*)\}", code)
            names = found.group(1).split(",") if found else code.split(".")
            wanted |= {n.rstrip("[]") for n in names if re.fullmatch(r"[\w-]+(\[\])?", n)}
        wanted -= {"_details", "columns", "sort", "queue", "exchange"} if first != "topic-permissions" else set()
        assert wanted <= have | {"rate"}, (first, wanted - have)
