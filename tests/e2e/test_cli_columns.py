"""Which columns can be listed: all that the API has, and no others."""
# SPDX-License-Identifier: Apache-2.0
import pytest

from api import Api
from node import hermes
from shell import broker, cli, rows      # noqa: F401 (fixtures)

#: objects whose names others gave
OPEN = {"arguments", "client_properties", "definition", "effective_policy_definition", "limits", "value", "metadata", "cluster_state"}
KINDS = ["queues", "exchanges", "bindings", "connections", "channels", "consumers", "users", "vhosts", "permissions",
         "topic-permissions", "policies", "operator-policies", "parameters", "global-parameters", "vhost-limits", "user-limits"]


@pytest.fixture(scope="module")
def busy(broker):
    """Something of each kind, with each field that can be missing."""
    api = Api(broker)
    conn = broker.pika(client_properties={"connection_name": "busy"})
    ch = conn.channel()
    ch.confirm_delivery()
    ch.queue_declare("quorum", durable=True, arguments={"x-queue-type": "quorum"})
    ch.queue_declare("single", arguments={"x-single-active-consumer": True})
    for queue in ("quorum", "single"):
        ch.queue_bind(queue, "amq.topic", queue)
        ch.basic_publish("amq.topic", queue, b"x")
        ch.basic_get(queue)
    ch.queue_declare("exclusive")
    conn.channel().basic_consume("exclusive", lambda *a: None, exclusive=True)
    ch.basic_consume("single", lambda *a: None)
    api("PUT", "policies/%2F/p", 201, {"pattern": "q", "definition": {"max-length": 5}})
    api("PUT", "operator-policies/%2F/p", 201, {"pattern": "q", "definition": {"max-length": 5}})
    api("PUT", "topic-permissions/%2F/guest", 201, {"exchange": "amq.topic", "write": "a", "read": "b"})
    for limit in ("vhost-limits/%2F/max-queues", "vhost-limits/%2F/max-connections", "user-limits/guest/max-channels",
                  "user-limits/guest/max-connections"):
        api("PUT", limit, 204, {"value": 50})
    yield api
    conn.close()


def leaves(row, is_open, before=""):
    for name, value in row.items():
        if isinstance(value, dict) and name not in is_open:
            yield from leaves(value, is_open, before + name + ".")
        else:
            yield before + name


def fields(api, kind):
    is_open = OPEN - {"value"} if kind.endswith("limits") else OPEN
    return {leaf for row in api.get(kind) for leaf in leaves(row, is_open)}


@pytest.mark.parametrize("kind", KINDS)
def test_columns_are_the_fields_of_the_api(busy, cli, kind):
    said = cli("list", kind, "--columns", "xyzzy", status=2)
    head, _, known = said.strip().partition("; they have ")
    assert head == "hermes list: %s have no column 'xyzzy'" % kind
    there = fields(busy, kind) | ({"idle_since"} if kind in ("queues", "channels") else set())   # comes after a while
    rates = [f for f in there if f.endswith("_details.rate")]
    assert set(known.split(", ")) == there - set(rates)
    if rates:
        assert cli("list", kind, "--columns", ",".join(rates)).startswith("\t".join(rates) + "\n")


@pytest.mark.parametrize("kind, column, nearest", [
    ("users", "nmae", "name"), ("queues", "mesages", "messages"), ("queues", "message_stats.pubish", "message_stats.publish"),
    ("consumers", "queue.nam", "queue.name"), ("policies", "apply_to", "apply-to"), ("queues", "argument", "arguments"),
    ("queues", "message_details.rate", "messages_details.rate")])
def test_a_column_that_is_misspelt(cli, kind, column, nearest):
    for how in ([], ["--json"]):
        assert cli("list", kind, "--columns", column, *how, status=2) == \
            "hermes list: %s have no column '%s'; nearest: '%s'\n" % (kind, column, nearest)


def test_names_that_others_gave(busy, broker, cli):
    there = rows(cli("list", "queues", "--columns", "name,arguments.x-queue-type"))
    assert {"name": "quorum", "arguments.x-queue-type": "quorum"} in there
    done = hermes("list", "queues", "--columns", "name,arguments.x-quue-type", env={"HERMES_URL": broker.http_url})
    assert (done.returncode, done.stderr) == (0, "hermes list: none of the queues has 'arguments.x-quue-type'\n")
