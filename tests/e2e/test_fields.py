"""Every field of tests/conformance-mgmt/ENDPOINTS.md, decoded with its type, as clients in Go and Rust do.

A wrong type anywhere stops such a client: an integer is no fraction, a text no number, an object never a list, and null
is for those fields only that say so. There is one table of kinds of documents, and one of endpoints.
"""
# SPDX-License-Identifier: Apache-2.0
import re
from urllib.parse import quote

from api import Api
from node import TOP, wait_for

TEXT, INT, NUM, BOOL, ANY = "text", "int", "number", "bool", "anything"
TYPES = {TEXT: lambda v: isinstance(v, str), BOOL: lambda v: isinstance(v, bool), ANY: lambda v: v is not None,
         INT: lambda v: isinstance(v, int) and not isinstance(v, bool),
         NUM: lambda v: isinstance(v, (int, float)) and not isinstance(v, bool)}
RATE = {"rate": NUM}


class Null:
    """Of this type, or null."""

    def __init__(self, kind):
        self.kind = kind


class Map:
    """An object with any keys and such values."""

    def __init__(self, kind):
        self.kind = kind


class Maybe:
    """May be missing, but not everywhere: some document of the endpoints that have it shows it on the busy node."""

    def __init__(self, kind):
        self.kind = kind


def fields(kind, names):
    return {name: kind for name in names.split()}


def counters(names):
    """Each with its rate."""
    return {**fields(INT, names), **{name + "_details": RATE for name in names.split()}}


def some(names):
    """Counters that are there once they have been touched."""
    return {name: Maybe(kind) for name, kind in counters(names).items()}


#: kinds of documents by what ENDPOINTS.md calls relied upon
DELIVERED = "deliver deliver_no_ack deliver_get get get_no_ack ack redeliver"
PUBLISHED = "publish confirm return_unroutable drop_unroutable"
BACKLOG = counters("messages messages_ready messages_unacknowledged")
OBJECT = Map(ANY)
EXCHANGE_TYPE = {**fields(TEXT, "name description"), "enabled": BOOL}
CONTEXT = fields(TEXT, "node description path port")
OVERVIEW = {
    **fields(TEXT, "rabbitmq_version management_version erlang_version cluster_name node"),
    "object_totals": fields(INT, "connections channels queues exchanges consumers"),
    "queue_totals": BACKLOG, "message_stats": some(DELIVERED + " " + PUBLISHED),
    "listeners": [{**fields(TEXT, "node protocol ip_address"), "port": INT}], "contexts": [CONTEXT],
    "exchange_types": [EXCHANGE_TYPE], "churn_rates": counters(
        "connection_created connection_closed channel_created channel_closed queue_declared queue_created queue_deleted"),
}
MEMORY = {"total": fields(INT, "rss allocated erlang"), "strategy": TEXT,
          **fields(INT, "connection_readers connection_writers connection_channels connection_other queue_procs binary"
                   " quorum_queue_procs plugins metrics mgmt_db mnesia msg_index code atom other_proc other_system"
                   " allocated_unused reserved_unallocated metadata_store metadata_store_ets")}
NODE = {
    **fields(TEXT, "name type os_pid"), **fields(BOOL, "running mem_alarm disk_free_alarm being_drained"),
    **fields(INT, "mem_used mem_limit disk_free disk_free_limit fd_used fd_total sockets_used sockets_total proc_used"
             " proc_total uptime run_queue processors"),
    **fields([ANY], "partitions cluster_links applications"),
    "auth_mechanisms": [EXCHANGE_TYPE], "exchange_types": [EXCHANGE_TYPE], "contexts": [CONTEXT],
    "enabled_plugins": [TEXT],
    **fields(INT, "io_read_count io_read_bytes io_write_count io_write_bytes io_sync_count io_seek_count io_reopen_count"
             " gc_num gc_bytes_reclaimed context_switches mnesia_ram_tx_count mnesia_disk_tx_count queue_index_read_count"
             " queue_index_write_count msg_store_read_count msg_store_write_count"),
    **fields(NUM, "io_read_avg_time io_write_avg_time io_sync_avg_time io_seek_avg_time"),
}
CONSUMER = {
    **fields(TEXT, "consumer_tag activity_status"), **fields(BOOL, "ack_required exclusive active"),
    **fields(INT, "prefetch_count consumer_timeout"), "arguments": OBJECT, "queue": fields(TEXT, "name vhost"),
    "channel_details": {**fields(TEXT, "name connection_name node user peer_host"), **fields(INT, "number peer_port")},
}
QUEUE = {
    **fields(TEXT, "name vhost type node state"), **fields(BOOL, "durable auto_delete exclusive"), "arguments": OBJECT,
    **BACKLOG, **fields(INT, "message_bytes message_bytes_ready message_bytes_unacknowledged message_bytes_ram"
                        " message_bytes_persistent messages_persistent messages_ram consumers memory"),
    "consumer_utilisation": NUM, "message_stats": Maybe(some(DELIVERED + " publish")),
    **fields(Null(TEXT), "policy operator_policy exclusive_consumer_tag single_active_consumer_tag"),
    "effective_policy_definition": OBJECT, "idle_since": Maybe(TEXT),
}
ONE_QUEUE = {**QUEUE, "consumer_details": [CONSUMER],
             "owner_pid_details": Maybe({**fields(TEXT, "name peer_host"), "peer_port": INT})}
EXCHANGE = {**fields(TEXT, "name vhost type"), **fields(BOOL, "durable auto_delete internal"), "arguments": OBJECT,
            "message_stats": Maybe(some("publish_in publish_out"))}
ONE_EXCHANGE = {**EXCHANGE, "incoming": [ANY], "outgoing": [ANY]}
BINDING = {**fields(TEXT, "source destination destination_type routing_key vhost properties_key"), "arguments": OBJECT}
CONNECTION = {
    **fields(TEXT, "name node user vhost state type protocol host peer_host auth_mechanism"), "user_provided_name": Maybe(TEXT),
    **fields(INT, "port peer_port channels channel_max frame_max timeout connected_at send_pend recv_cnt send_cnt"),
    **counters("recv_oct send_oct"), "ssl": BOOL, "client_properties": OBJECT,
}
CHANNEL = {
    **fields(TEXT, "state user vhost node name"), **fields(BOOL, "confirm transactional"), "idle_since": Maybe(TEXT),
    **fields(INT, "number prefetch_count global_prefetch_count consumer_count messages_unacknowledged"
             " messages_unconfirmed messages_uncommitted acks_uncommitted"),
    "connection_details": {**fields(TEXT, "name peer_host"), "peer_port": INT},
    "message_stats": Maybe(some(DELIVERED + " " + PUBLISHED)),
}
VHOST = {**fields(TEXT, "name description"), "tags": [TEXT], "tracing": BOOL, "cluster_state": Map(TEXT),
         **{name: Maybe(kind) for name, kind in {**BACKLOG, **counters("recv_oct send_oct")}.items()},
         "message_stats": Maybe(some(DELIVERED + " " + PUBLISHED)), "metadata": OBJECT, "default_queue_type": TEXT}
LIMITS = Map(INT)
USER = {**fields(TEXT, "name password_hash hashing_algorithm"), "tags": [TEXT], "limits": LIMITS}
PERMISSION = fields(TEXT, "user vhost configure write read")
TOPIC = fields(TEXT, "user vhost exchange write read")
POLICY = {**fields(TEXT, "vhost name pattern apply-to"), "priority": INT, "definition": OBJECT}
PARAMETER = {**fields(TEXT, "vhost component name"), "value": ANY}
GLOBAL = {"name": TEXT, "value": ANY}
VHOST_LIMITS = {"vhost": TEXT, "value": LIMITS}
USER_LIMITS = {"user": TEXT, "value": LIMITS}
FINE = {"status": TEXT}
ATTEMPTS = {"protocol": TEXT, **fields(INT, "auth_attempts auth_attempts_failed auth_attempts_succeeded")}

#: endpoint as ENDPOINTS.md writes it, with names of things that are there; the kind of its answer
V, Q, X = "v%2Fh", "full", "amq.topic"
AGES = "?lengths_age=60&lengths_incr=5&msg_rates_age=60&msg_rates_incr=5&data_rates_age=60&data_rates_incr=5"
ENDPOINTS = [
    ("overview", OVERVIEW), ("overview" + AGES, OVERVIEW), ("nodes", [NODE]), ("nodes/{node}", NODE),
    ("nodes/{node}/memory", {"memory": MEMORY}), ("nodes/{node}?memory=true", {**NODE, "memory": MEMORY}),
    ("queues", [QUEUE]), ("queues/{v}", [QUEUE]), ("queues" + AGES, [QUEUE]), ("queues/{v}/{q}", ONE_QUEUE),
    ("queues/{v}/{q}" + AGES, ONE_QUEUE), ("exchanges", [EXCHANGE]), ("exchanges/{v}", [EXCHANGE]),
    ("exchanges/{v}/{x}", ONE_EXCHANGE), ("exchanges/{v}/amq.default", ONE_EXCHANGE), ("bindings", [BINDING]),
    ("bindings/{v}", [BINDING]), ("bindings/{v}/e/{x}/q/{q}", [BINDING]), ("bindings/{v}/e/{x}/e/fan", [BINDING]),
    ("bindings/{v}/e/{x}/q/{q}/{props}", BINDING), ("bindings/{v}/e/{x}/e/fan/a.%2523", BINDING),
    ("queues/{v}/{q}/bindings", [BINDING]), ("exchanges/{v}/{x}/bindings/source", [BINDING]),
    ("exchanges/{v}/fan/bindings/destination", [BINDING]), ("connections", [CONNECTION]),
    ("connections" + AGES, [CONNECTION]), ("vhosts/{v}/connections", [CONNECTION]), ("connections/{connection}", CONNECTION),
    ("connections/username/guest", [fields(TEXT, "name node user vhost")]), ("connections/{connection}/channels", [CHANNEL]),
    ("channels", [CHANNEL]), ("vhosts/{v}/channels", [CHANNEL]), ("channels/{channel}", CHANNEL),
    ("consumers", [CONSUMER]), ("consumers/{v}", [CONSUMER]), ("vhosts", [VHOST]), ("vhosts/{v}", VHOST),
    ("vhosts/{v}/permissions", [PERMISSION]), ("vhosts/{v}/topic-permissions", [TOPIC]), ("users", [USER]),
    ("users/ann", USER), ("permissions", [PERMISSION]), ("permissions/{v}/ann", PERMISSION),
    ("users/ann/permissions", [PERMISSION]), ("topic-permissions", [TOPIC]), ("topic-permissions/{v}/ann", [TOPIC]),
    ("users/ann/topic-permissions", [TOPIC]), ("policies", [POLICY]), ("policies/{v}", [POLICY]), ("policies/{v}/p", POLICY),
    ("operator-policies", [POLICY]), ("operator-policies/{v}", [POLICY]), ("operator-policies/{v}/o", POLICY),
    ("parameters", [PARAMETER]), ("parameters/vhost-limits", [PARAMETER]), ("parameters/vhost-limits/{v}", [PARAMETER]),
    ("parameters/vhost-limits/{v}/limits", PARAMETER), ("global-parameters", [GLOBAL]), ("global-parameters/g", GLOBAL),
    ("vhost-limits", [VHOST_LIMITS]), ("vhost-limits/{v}", [VHOST_LIMITS]), ("user-limits", [USER_LIMITS]),
    ("user-limits/ann", [USER_LIMITS]), ("whoami", {"name": TEXT, "tags": [TEXT]}), ("auth", Map(ANY)),
    ("extensions", [ANY]), ("cluster-name", {"name": TEXT}), ("feature-flags", [fields(TEXT, "name desc state stability")]),
    ("auth/attempts/{node}", [ATTEMPTS]), ("users/without-permissions", [USER]), ("aliveness-test/{v}", FINE),
    ("health/checks/alarms", FINE), ("health/checks/local-alarms", FINE), ("health/checks/virtual-hosts", FINE),
    ("health/checks/port-listener/{port}", {**FINE, "port": INT}),
    ("health/checks/protocol-listener/amqp", {**FINE, "protocol": TEXT}),
    ("health/checks/node-is-mirror-sync-critical", FINE), ("health/checks/node-is-quorum-critical", FINE),
    ("health/checks/certificate-expiration/1/months", FINE), ("healthchecks/node", FINE), ("healthchecks/node/{node}", FINE),
    ("definitions", {
        "rabbit_version": TEXT, "users": [USER], "vhosts": [{"name": TEXT}], "permissions": [PERMISSION],
        "topic_permissions": [TOPIC], "parameters": [PARAMETER], "global_parameters": [GLOBAL], "policies": [POLICY],
        "queues": [{**fields(TEXT, "name vhost"), **fields(BOOL, "durable auto_delete"), "arguments": OBJECT}],
        "exchanges": [{**fields(TEXT, "name vhost type"), **fields(BOOL, "durable auto_delete internal"), "arguments": OBJECT}],
        "bindings": [{name: kind for name, kind in BINDING.items() if name != "properties_key"}]}),
    ("definitions/{v}", {
        "rabbit_version": TEXT, "parameters": [PARAMETER],
        "policies": [{name: kind for name, kind in POLICY.items() if name != "vhost"}],
        "queues": [{"name": TEXT, **fields(BOOL, "durable auto_delete"), "arguments": OBJECT}],
        "exchanges": [{**fields(TEXT, "name type"), **fields(BOOL, "durable auto_delete internal"), "arguments": OBJECT}],
        "bindings": [fields(TEXT, "source destination destination_type routing_key")]}),
]
PAGED = [("queues", QUEUE), ("queues/{v}", QUEUE), ("exchanges", EXCHANGE), ("exchanges/{v}", EXCHANGE),
         ("connections", CONNECTION), ("channels", CHANNEL), ("vhosts", VHOST)]
PAGE = "page page_count page_size item_count filtered_count total_count"
#: endpoints in which every field that may be missing has to be somewhere
WHOLE = {"overview", "queues", "exchanges", "connections", "channels", "vhosts"}
#: lists that are empty on the busy node, too
EMPTY = {"partitions", "cluster_links", "extensions", "incoming", "outgoing"}


class Reader:
    """Reads documents strictly; knows afterwards which fields that may be missing have been there."""

    def __init__(self, full):
        self.full = full            # lists of the endpoint itself have to hold something
        self.missing, self.seen = {}, set()

    def read(self, value, kind, where, top=True):
        if isinstance(kind, Null):
            if value is not None:
                self.read(value, kind.kind, where, top)
        elif isinstance(kind, Maybe):
            self.read(value, kind.kind, where, top)
        elif isinstance(kind, Map):
            assert isinstance(value, dict), "%s is no object: %r" % (where, value)
            for item in value.values():
                if kind.kind is not ANY:
                    self.read(item, kind.kind, where + ".*", False)
        elif isinstance(kind, list):
            assert isinstance(value, list), "%s is no list: %r" % (where, value)
            assert value or not (self.full and top) or where in EMPTY, "%s is empty" % where
            for item in value:
                self.read(item, kind[0], where + "[]", False)
        elif isinstance(kind, dict):
            assert isinstance(value, dict), "%s is no object: %r" % (where, value)
            for name, inner in kind.items():
                at = "%s.%s" % (where, name)
                if name in value:
                    self.seen.add(at)
                    self.read(value[name], inner, at, False)
                else:
                    assert isinstance(inner, Maybe), "%s is missing; there are %s" % (at, " ".join(sorted(value)))
                    self.missing[at] = where
        else:
            assert TYPES[kind](value), "%s is no %s: %r" % (where, kind, value)

    def never(self):
        """Fields that were missing wherever they may be."""
        return sorted(set(self.missing) - self.seen)


def where_of(this, template):
    return template.format(v=V, q=Q, x=X, node=this.node_name, port=this.port, connection=this.connection,
                           channel="%s%%20(1)" % this.connection, props=this.props)


def begin(this):
    this.api = Api(this)
    this.node_name = quote(this.api.get("overview")["node"], safe="")
    this.connection = this.props = None


def busy_node(this):
    """Something of everything, and traffic of every kind."""
    api = this.api
    api("PUT", "vhosts/" + V, 201, body={"description": "all of it", "tags": "a,b"})
    api("PUT", "users/ann", 201, body={"password": "a", "tags": "monitoring"})
    api("PUT", "users/bob", 201, body={"password_hash": "", "tags": ""})
    api("PUT", "permissions/%s/ann" % V, 201, body={"configure": "", "write": "", "read": ".*"})
    api("PUT", "topic-permissions/%s/ann" % V, 201, body={"exchange": "amq.topic", "write": "^a", "read": ".*"})
    api("PUT", "policies/%s/p" % V, 201, body={"pattern": "^full", "definition": {"max-length": 99}, "apply-to": "queues"})
    api("PUT", "policies/%s/p2" % V, 201, body={"pattern": ".*", "definition": {"alternate-exchange": "fan"},
                                             "priority": 3, "apply-to": "exchanges"})
    api("PUT", "operator-policies/%s/o" % V, 201, body={"pattern": "f", "definition": {"expires": 9999999}, "priority": 1})
    api("PUT", "vhost-limits/%s/max-queues" % V, 204, body={"value": 99})
    api("PUT", "user-limits/ann/max-channels", 204, body={"value": 9})
    api("PUT", "global-parameters/g", 201, body={"value": {"a": []}})
    conn = this.raw(vhost="v/h", properties={"connection_name": "all of it", "capabilities": {"basic.nack": True}})
    chan = conn.channel()
    for name, arguments in {
            "full": {"x-max-length": 1000}, "empty": {}, "priorities": {"x-max-priority": 5},
            "single": {"x-single-active-consumer": True}, "quorum": {"x-queue-type": "quorum"},
            "letters": {"x-dead-letter-exchange": "fan", "x-message-ttl": 99999}}.items():
        chan.declare(name, durable=True, arguments=arguments)
    chan.declare("mine", exclusive=True, auto_delete=True)
    chan.exchange("fan", "fanout", auto_delete=True)
    chan.exchange("inner", "x-delayed-message", durable=True, internal=True, arguments={"x-delayed-type": "direct"})
    chan.bind("full", "amq.topic", "a.b.#", arguments={"n": 1, "t": {}})
    chan.call("exchange.bind", destination="fan", source="amq.topic", routing_key="a.#")
    chan.call("confirm.select")
    for key in ("full", "quorum", "single", "letters", "nobody"):
        for _ in range(4):
            chan.publish("", key, "m", delivery_mode=2)
    chan.publish("amq.topic", "a.b.c", "m")
    chan.confirmed(21)
    chan.publish("", "nobody", "m", mandatory=True)
    chan.expect("basic.return")
    chan.confirmed(1)
    chan.get("full", no_ack=True)
    chan.nack(chan.get("full", no_ack=False).delivery_tag)
    chan.ack(chan.get("full", no_ack=False).delivery_tag)
    for queue, kw in (("full", {"no_ack": True}), ("single", {}), ("mine", {"exclusive": True}), ("quorum", {"no_ack": False})):
        chan.consume(queue, tag=queue, **kw)
    second = conn.channel()
    second.call("tx.select")
    second.publish("", "empty", "m")
    third = this.raw().channel()                   # the default vhost, another connection
    third.declare("other")
    third.publish("", "other", "m")
    chan.sync(), second.sync(), third.sync()
    chan.call("basic.cancel", consumer_tag="full")
    chan.conn.pending.clear()
    for _ in range(2):
        chan.publish("", "full", "left", delivery_mode=2)
    chan.sync()
    this.connection = quote(next(c["name"] for c in api.get("connections") if c["vhost"] == "v/h"), safe="")
    this.props = quote(api.get("bindings/%s/e/%s/q/%s" % (V, X, Q))[0]["properties_key"], safe="")


def walk(this, reader, endpoints):
    """What cannot be read, as text."""
    problems = []
    for where, kind in endpoints:
        try:
            reader.read(this.api.get(where_of(this, where)), kind, where.partition("?")[0])
        except AssertionError as exc:
            problems.append("%s: %s" % (where, str(exc).splitlines()[0]))
    return problems


def idle(this):
    found = [doc for doc in (this.api.get("queues/%s/%s" % (V, Q)), this.api.get(where_of(this, "channels/{channel}")))
             if "idle_since" in doc]
    return found if len(found) == 2 else None


def test_busy(node):
    """Everything there is, under traffic; and once more when it is idle. All that may be missing is somewhere."""
    this = node()
    begin(this)
    busy_node(this)
    reader = Reader(full=True)
    pages = [(where + "?page=1&page_size=2&sort=", {"items": [kind], **fields(INT, PAGE)}) for where, kind in PAGED]
    each = [("queues/{v}/" + queue["name"], ONE_QUEUE) for queue in this.api.get("queues/" + V)]
    assert len(each) == 7
    assert walk(this, reader, ENDPOINTS + pages + each) == []
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$"
    assert all(re.match(stamp, doc["idle_since"]) for doc in wait_for(lambda: idle(this), 15, "idle queue and channel"))
    assert walk(this, reader, ENDPOINTS + pages) == []
    assert [at for at in reader.never() if re.split(r"[.[]", at)[0] in WHOLE] == []
    messages(this)


def messages(this):
    got = this.api("POST", "queues/%s/letters/get" % V, body={"count": 2, "ackmode": "ack_requeue_true", "encoding": "auto"})
    message = {**fields(TEXT, "payload payload_encoding exchange routing_key"),
               **fields(INT, "payload_bytes message_count"), "redelivered": BOOL, "properties": OBJECT}
    Reader(full=True).read(got, [message], "get")
    routed = this.api("POST", "exchanges/%s/fan/publish" % V, body={
        "properties": {}, "routing_key": "", "payload": "", "payload_encoding": "string"})
    assert routed == {"routed": False}


def test_fresh(node):
    """A node on which nothing has been done."""
    this = node()
    begin(this)
    here = [(where, kind) for where, kind in ENDPOINTS if not re.search(r"\{(v|q|x|connection|channel|props)\}|ann|/g$", where)]
    assert len(here) > 40
    assert walk(this, Reader(full=False), here) == []
    for empty in ("queues", "bindings", "connections", "channels", "consumers", "policies", "parameters", "vhost-limits"):
        assert this.api.get(empty) == [], empty


def test_every_endpoint_is_in_the_table():
    """Those of ENDPOINTS.md that are read, as it writes them."""
    rows = [row.split("|")[2] for row in (TOP / "tests/conformance-mgmt/ENDPOINTS.md").read_text().splitlines()
            if re.match(r"\| [ABC] \| `?(GET|…)", row)]
    told = [name.replace("GET ", "") for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(told) > 60
    here = [re.sub(r"\{\w+\}|\bann\b|amq\.\w+|\bfan\b", "*", where) for where, _ in ENDPOINTS]
    for name in told:
        if name.startswith(("/api/", "…/", "/")):
            last = re.sub(r"\{\w+\}", "*", name).replace("/api/", "").replace("…", "").split("[")[0].split("?")[0]
            assert any(last.strip("/").split("/")[-1] in where.split("?")[0].split("/") for where in here), name
