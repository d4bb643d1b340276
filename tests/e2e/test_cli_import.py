"""Definitions of one virtual host. One node for all."""
# SPDX-License-Identifier: Apache-2.0
import gzip
import json
import subprocess

import pytest

from node import BINARY, SLOW, clean_env, hermes
from shell import broker, cli, rows      # noqa: F401 (fixtures)

QUEUE = {"name": "q", "durable": True, "auto_delete": False, "arguments": {}}


def test_of_one_vhost_into_another(cli, tmp_path):
    file = tmp_path / "shop.json"
    cli("vhost", "add", "shop")
    cli("vhost", "add", "copy")
    for words in (["declare", "queue", "q"], ["declare", "exchange", "x", "-t", "topic"], ["bind", "x", "q", "-k", "a.#"],
                  ["policy", "set", "p", "^q", "-s", "max-length=7"]):
        cli(*words, "--vhost", "shop")
    cli("export", file, "--vhost", "shop")
    said = "%s is what was exported of one virtual host: --vhost NAME says into which it goes\n"
    assert cli("import", file, status=2) == "hermes import: " + said % file
    assert cli("import", "-", stdin=file.read_text(), status=2) == "hermes import: " + said % "standard input"
    assert "q" not in [r["name"] for r in rows(cli("list", "queues", "--vhost", "/"))]
    assert cli("import", file, "--vhost", "copy") == "imported all\n"
    for what in ("queues", "exchanges", "bindings", "policies"):
        there = [{k: v for k, v in r.items() if k != "vhost"} for r in rows(cli("list", what, "--vhost", "shop"))]
        assert there == [{k: v for k, v in r.items() if k != "vhost"} for r in rows(cli("list", what, "--vhost", "copy"))]
        assert there
    for vhost in ("shop", "copy"):
        cli("vhost", "delete", vhost)


def test_packed(cli, tmp_path):
    file = tmp_path / "definitions.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"queues": [{**QUEUE, "name": "packed", "vhost": "/"}]}).encode()))
    cli("apply", file, status=1)
    assert cli("import", file) == "imported all\n"
    cli("apply", file)
    assert "packed" in [r["name"] for r in rows(cli("list", "queues", "--vhost", "/"))]
    file.write_bytes(file.read_bytes()[:-1])
    assert cli("import", file, status=1) == "hermes import: %s is packed, and not whole\n" % file
    cli("delete", "queue", "packed")


@pytest.mark.parametrize("doc, status", [
    ({"queues": [{**QUEUE, "vhost": "/"}]}, 0),
    ({"vhosts": [], "queues": [QUEUE]}, 1),
    ({"queues": [QUEUE, {**QUEUE, "vhost": "/"}]}, 1),      # a mistake in one of them
    ({"parameters": [], "queues": []}, 0),
    ({"users": []}, 0),
    ({"policies": [{"name": "p", "pattern": "a", "definition": {"max-length": 1}}]}, 2),
    ({"queues": 7}, 1),
], ids=lambda v: json.dumps(v)[:40])
def test_what_is_of_one_vhost(cli, doc, status):
    said = cli("import", stdin=json.dumps(doc), status=status)
    assert ("--vhost NAME" in said) == (status == 2)


def test_import_as_json(broker):
    def run(doc):
        done = hermes("import", "--json", env={"HERMES_URL": broker.http_url}, stdin=json.dumps(doc))
        return done.returncode, json.loads(done.stdout)

    assert run({"queues": []}) == (0, {"failed": 0, "errors": []})
    good, bad = ({**QUEUE, "name": name, "vhost": "/", "arguments": {"x-max-priority": much}} for name, much in (("n", 3), ("w", "x")))
    status, said = run({"queues": [bad, good]})
    assert status == 1 and (said["imported"], said["failed"]) == (1, 1)
    assert [error["object"] for error in said["errors"]] == ["queue 'w' in vhost '/'"] and said["errors"][0]["reason"]


@pytest.mark.parametrize("name", ["kept.json", "kept.json.gz"])
def test_export_that_has_no_room(broker, cli, tmp_path, name):
    """The last one stays as it was, and nothing is left beside it."""
    file = tmp_path / name
    file.write_text("the last one")
    file.chmod(0o640)
    words = ["bash", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "bash", str(BINARY), "export", str(file)]
    done = subprocess.run(words, env=clean_env({"HERMES_URL": broker.http_url}), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=30 * SLOW)
    assert done.returncode == 1 and "cannot write %s" % file in done.stderr, done.stderr
    assert file.read_text() == "the last one" and list(tmp_path.iterdir()) == [file]
    cli("export", file)
    assert file.stat().st_mode & 0o777 == 0o640 and list(tmp_path.iterdir()) == [file]
    cli("import", file)
