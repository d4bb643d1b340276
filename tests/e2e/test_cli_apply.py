"""Definitions as code: the difference, what makes it so, and what is removed. One node for all."""
# SPDX-License-Identifier: Apache-2.0
import copy
import json

import pytest

from api import Api
from shell import at_terminal, broker, cli, rows      # noqa: F401 (fixtures)

DOC = {
    "global_parameters": [{"name": "apply", "value": {"a": 1}}],
    "users": [{"name": "app", "password_hash": "EDiErdetSlrUWTjDKW4Qi2CpSm5xThO8DEvG2TKH91fvpg3o", "tags": "monitoring,management"}],
    "vhosts": [{"name": "/"}, {"name": "code", "description": "as code"}],
    "permissions": [{"user": "guest", "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"},
                    {"user": "guest", "vhost": "code", "configure": ".*", "write": ".*", "read": ".*"},
                    {"user": "app", "vhost": "code", "configure": "", "write": "^a", "read": "^a"}],
    "topic_permissions": [{"user": "app", "vhost": "code", "exchange": "x", "write": "^a", "read": ""}],
    "parameters": [{"vhost": "code", "component": "vhost-limits", "name": "limits", "value": {"max-queues": 50}}],
    "policies": [{"vhost": "code", "name": "p", "pattern": "^a", "definition": {"max-length": 10}}],
    "queues": [{"vhost": "code", "name": "a", "durable": True, "auto_delete": False, "arguments": []},
               {"vhost": "code", "name": "b", "durable": True, "auto_delete": False, "arguments": {"x-queue-type": "classic"}}],
    "exchanges": [{"vhost": "code", "name": "x", "type": "topic", "durable": True, "auto_delete": False, "internal": False,
                   "arguments": {}}],
    "bindings": [{"vhost": "code", "source": "x", "destination": "a", "destination_type": "queue", "routing_key": "k",
                  "arguments": {"n": n}} for n in (1, 2)],
}


@pytest.fixture
def apply(cli, tmp_path):
    """apply(DOC, words...): what it says on standard output, or of a failure standard error."""
    def run(doc, *words, status=0):
        file = tmp_path / "definitions.json"
        file.write_text(json.dumps(doc))
        return cli("apply", file, *words, status=status)

    return run


@pytest.fixture
def made(apply, broker):
    apply(DOC, "--yes")
    yield DOC
    api = Api(broker)
    for where in ("vhosts/code", "users/app", "global-parameters/apply"):
        api.request("DELETE", where)


def changed(where, **fields):
    """DOC with one object of it (kind, index) changed."""
    doc = copy.deepcopy(DOC)
    doc[where[0]][where[1]].update(fields)
    return doc


def test_new_same_and_nothing_without_a_yes(apply, broker):
    assert apply(DOC, status=1) == "hermes apply: nothing was changed; --yes makes the changes\n"
    assert "code" not in [v["name"] for v in Api(broker).get("vhosts")]
    said = json.loads(apply(DOC, "--json", "--yes"))
    assert said["applied"] and not said["failed"]
    kinds = said["kinds"]
    assert [len(kinds[k]["new"]) for k in DOC] == [1, 1, 1, 2, 1, 1, 1, 2, 1, 2]
    assert (kinds["vhosts"]["same"], kinds["permissions"]["same"]) == (1, 1)
    assert {"vhost": "code", "name": "a"} in kinds["queues"]["new"] and "guest" in str(kinds["users"]["only_there"])
    again = apply(DOC)          # without --yes: there is nothing to confirm
    assert again.endswith("there is no difference\n")
    assert rows(again.rsplit("there is", 1)[0])[-1] == \
        {"kind": "bindings", "new": "0", "changed": "0", "differ": "0", "same": "2", "only there": "0"}
    there = Api(broker).get("definitions")
    assert apply(there).endswith("there is no difference\n")       # what export writes
    # ... and what another node writes that is the same but for its mark
    mark, = [one for one in there["global_parameters"] if one["name"] == "internal_cluster_id"]
    mark["value"] = "rabbitmq-cluster-id-of-another"
    assert apply(there, "--yes").endswith("there is no difference\n")
    api = Api(broker)
    assert api.get("global-parameters/internal_cluster_id")["value"] != mark["value"]
    for where in ("vhosts/code", "users/app", "global-parameters/apply"):
        api("DELETE", where, 204)


@pytest.mark.parametrize("doc, line", [
    (changed(("policies", 0), definition={"max-length": 11}), '    definition: {"max-length":10} -> {"max-length":11}'),
    (changed(("users", 0), tags=["management"]), '    tags: ["management","monitoring"] -> ["management"]'),
    (changed(("vhosts", 1), description="other"), '    description: "as code" -> "other"'),
    (changed(("permissions", 2), write="^b"), '    write: "^a" -> "^b"'),
    (changed(("topic_permissions", 0), read="^b"), '    read: "" -> "^b"'),
    (changed(("parameters", 0), value={"max-queues": 51}), '    value: {"max-queues":50} -> {"max-queues":51}'),
    (changed(("global_parameters", 0), value=7), '    value: {"a":1} -> 7'),
    (changed(("users", 0), password_hash="wPMdm/f8sCO/UqBe/+N4RF2/rGIb71gI/WXK6xWZk/j18UZN"), "    password_hash: another one"),
], ids=lambda v: None if isinstance(v, dict) else v.split(":")[0].strip())
def test_changed(apply, made, doc, line):
    said = apply(doc, "--yes").splitlines()
    assert line in said and "made 0, changed 1" in said
    assert sum(li.startswith("~ ") for li in said) == 1 and not any(li.startswith(("+ ", "! ", "- ")) for li in said)
    assert apply(doc).endswith("there is no difference\n")
    assert "changed 1" in apply(made, "--yes")


def test_what_a_file_does_not_say_stays(apply, made, broker):
    """An import would leave a user without a password, or without tags."""
    api = Api(broker)
    before = api.get("users/app")
    assert "changed 1" in apply({"users": [{"name": "app", "tags": "policymaker"}]}, "--yes")
    assert api.get("users/app") == {**before, "tags": ["policymaker"]}
    other = "wPMdm/f8sCO/UqBe/+N4RF2/rGIb71gI/WXK6xWZk/j18UZN"
    assert "changed 1" in apply({"users": [{"name": "app", "password_hash": other}]}, "--yes")
    assert api.get("users/app") == {**before, "tags": ["policymaker"], "password_hash": other}
    assert "changed 1" in apply({"users": [{"name": "app", "password": "clear"}]}, "--yes")
    assert Api(broker, "app", "clear").get("whoami")["tags"] == ["policymaker"]
    assert "there is no difference" in apply({"users": [{"name": "app", "password": "clear"}]})
    assert "changed 1" in apply({"vhosts": [{"name": "code", "tags": ["t"]}]}, "--yes")
    vhost = api.get("vhosts/code")
    assert (vhost["description"], vhost["tags"]) == ("as code", ["t"])


def test_what_cannot_be_changed(apply, made, broker):
    doc = changed(("queues", 0), arguments={"x-max-length": 5})
    doc["policies"][0]["priority"] = 3
    said = apply(doc, "--yes", status=1)
    assert said == "hermes apply: 1 that differ stay as they are\n"
    assert Api(broker).get("policies/code/p")["priority"] == 3         # the rest is made
    assert Api(broker).get("queues/code/a")["arguments"] == {}
    assert json.loads(apply({**made, "queues": [], "policies": doc["policies"]}, "--json"))["failed"] is False


def test_type_of_a_queue(apply, made, broker):
    """A file that says none takes that of the virtual host, and is as the node then; one that says another is not."""
    api = Api(broker)
    api("PUT", "vhosts/code", 204, {"default_queue_type": "quorum"})
    queue = {"vhost": "code", "name": "t", "durable": True, "auto_delete": False, "arguments": {}}
    assert "made 1" in apply({"queues": [queue]}, "--yes")
    assert api.get("queues/code/t")["type"] == "quorum"
    for same in queue, {**queue, "type": "quorum"}, {**queue, "arguments": {"x-queue-type": "quorum"}}:
        assert apply({"queues": [same]}).endswith("there is no difference\n")
    assert apply({"queues": [{**queue, "type": "classic"}]}, status=1) == "hermes apply: 1 that differ stay as they are\n"
    classic = {"queues": [{**queue, "name": name, "type": "classic"} for name in ("a", "c")]}
    assert "made 1" in apply(classic, "--yes")
    assert api.get("queues/code/c")["type"] == "classic"
    assert apply(classic).endswith("there is no difference\n")


def test_prune(apply, made, broker):
    api = Api(broker)
    less = copy.deepcopy(made)
    for kind in ("queues", "bindings", "permissions"):
        del less[kind][-1]
    for kind in ("topic_permissions", "parameters", "policies"):
        less[kind] = []
    del less["users"], less["exchanges"], less["global_parameters"]     # kinds that it says nothing of
    assert apply(less, "--yes").endswith("there is no difference\n")
    assert apply(less, "--prune", "--yes", status=1) == \
        "hermes apply: nothing was removed; --yes-prune removes without asking\n"
    said = apply(less, "--prune", "--yes-prune").splitlines()
    assert [li for li in said if li.startswith("- ")] == [
        "- permission of user 'admin' in vhost '/'",
        "- permission of user 'app' in vhost 'code'",
        "- topic permission of user 'app' for exchange 'x' in vhost 'code'",
        "- parameter 'vhost-limits' 'limits' in vhost 'code'",
        "- policy 'p' in vhost 'code'",
        "- queue 'b' in vhost 'code'",
        "- binding of exchange 'x' to queue 'a' with key 'k' in vhost 'code'"]
    assert said[-1] == "removed 7"
    assert apply(less, "--prune").endswith("there is no difference\n")
    assert [q["name"] for q in api.get("queues/code")] == ["a"]
    assert [b["arguments"] for b in api.get("bindings/code") if b["source"]] == [{"n": 1}]
    assert api.get("exchanges/code/x") and api.get("users/app") and api.get("global-parameters/internal_cluster_id")
    api("PUT", "permissions/%2F/admin", 201, {"configure": ".*", "write": ".*", "read": ".*"})
    # who does it stays
    said = apply({"users": [{"name": "admin"}, {"name": "app"}]}, "--prune", "--yes-prune", status=1)
    assert "hermes apply: user 'guest' stays: it is who does this\n" in said
    assert {u["name"] for u in api.get("users")} == {"guest", "admin", "app"}


def test_one_vhost(cli, apply, made, tmp_path, broker):
    cli("vhost", "add", "copy")
    file = tmp_path / "code.json"
    cli("export", file, "--vhost", "code")
    assert "made 7" in cli("apply", file, "--vhost", "copy", "--yes")
    assert cli("apply", file, "--vhost", "copy").endswith("there is no difference\n")
    assert "--vhost NAME says" in cli("apply", file, status=2)
    assert "queue 'q' in vhost 'copy'" not in cli("apply", file, "--vhost", "copy", "--prune")
    cli("declare", "queue", "q", "--vhost", "copy")
    assert "- queue 'q' in vhost 'copy'\n" in cli("apply", file, "--vhost", "copy", "--prune", "--yes-prune")
    Api(broker)("DELETE", "vhosts/copy", 204)


def test_at_a_terminal(made, broker, tmp_path):
    file = tmp_path / "definitions.json"
    file.write_text(json.dumps(changed(("policies", 0), priority=9)))
    status, said = at_terminal(broker, ["apply", file], [(b"Make it so? [y/N] ", b"n\n")])
    assert status == 1 and b"nothing was changed" in said
    status, said = at_terminal(broker, ["apply", file], [(b"Make it so? [y/N] ", b"Y\n")])
    assert status == 0 and b"made 0, changed 1" in said
    file.write_text(json.dumps({"queues": []}))
    status, said = at_terminal(broker, ["apply", file, "--prune"],
                               [(b"Remove the 2 behind -, among them 2 queues with all their messages? [y/N] ", b"yes\n")])
    assert status == 0 and b"removed 2" in said
    file.write_text(json.dumps({"vhosts": [{"name": "/"}]}))
    status, said = at_terminal(broker, ["apply", file, "--prune"], [(b"0 queues and 1 virtual hosts with all", b"n\n")])
    assert status == 1 and b"nothing was removed" in said


@pytest.mark.parametrize("text, status, why", [
    ('{"queues": 7}', 1, "'queues' is no list"),
    ('{"vhosts": [], "queues": [7]}', 1, "'queues' has something that is no object"),
    ('{"qeues": []}', 1, "'qeues' means nothing here"),
    ('{', 1, "standard input:1: "),
    ('[]', 1, "no JSON object"),
])
def test_what_is_wrong(cli, text, status, why):
    assert why in cli("apply", "-", stdin=text, status=status)


def test_what_the_node_refuses(cli, apply):
    said = apply({"vhosts": [], "queues": [{"vhost": "nowhere", "name": "q", "durable": True}]}, "--yes", status=1)
    assert "nowhere" in said
    assert "--yes-prune is of use with --prune only" in apply({}, "--yes-prune", status=2)
    assert "there is no such vhost" in apply({}, "--vhost", "nowhere", status=1)
