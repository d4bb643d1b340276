"""The container image: no engine runs here, so the second stage of the Dockerfile is carried out line by line in a root tree
of the same Debian, and what its ENTRYPOINT says is run there as its USER, on a file system that is read only."""
# SPDX-License-Identifier: Apache-2.0
import json
import os
import re
import shlex
import shutil
import subprocess

import pika
import pytest
import yaml

from conftest import copy_of, proxies, run
from node import SLOW, TOP, Node, clean_env, hermes

DOCKER = TOP / "contrib/docker"
SIZE_MAX = 60 << 20     # of the root tree, as tar | gzip -9
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def instructions(text):
    """Of the last stage: (word, rest) of each line."""
    text = re.sub(r"^[ \t]*#.*\n", "", text, flags=re.M)
    lines = [line.split(None, 1) for line in re.sub(r"\\\n", " ", text).splitlines() if line.strip()]
    last = max(i for i, line in enumerate(lines) if line[0] == "FROM")
    assert lines[last][1] == "debian:bookworm-slim"
    return [(word, rest.strip()) for word, rest in lines[last + 1:]]


class Image:
    def __init__(self, root):
        self.root = root
        self.user, self.workdir, self.env, self.volumes, self.ports = "0:0", "/", {}, [], []
        self.entrypoint = self.command = self.health = None

    def build(self, installed):
        for word, rest in instructions((DOCKER / "Dockerfile").read_text()):
            getattr(self, "do_" + word.lower())(rest, installed)

    def do_run(self, rest, installed):
        run("chroot", self.root, "/usr/bin/env", "-i", "PATH=" + PATH, "DEBIAN_FRONTEND=noninteractive",
            *proxies(), "/bin/sh", "-c", rest)

    def do_copy(self, rest, installed):
        words = rest.split()
        top = TOP
        if words[0].startswith("--from="):
            assert words.pop(0) == "--from=build"
            words[:-1] = [os.path.relpath(one, "/out") for one in words[:-1]]
            top = installed
        to = self.root / words[-1].lstrip("/")
        for one in words[:-1]:
            if (top / one).is_dir():
                shutil.copytree(top / one, to, dirs_exist_ok=True)
                continue
            if words[-1].endswith("/"):
                to.mkdir(parents=True, exist_ok=True)
            shutil.copy(top / one, to)

    def do_user(self, rest, installed):
        self.user = rest

    def do_workdir(self, rest, installed):
        self.workdir = rest

    def do_env(self, rest, installed):
        self.env.update(one.split("=", 1) for one in shlex.split(rest))

    def do_volume(self, rest, installed):
        self.volumes += rest.split()

    def do_expose(self, rest, installed):
        self.ports += [int(port) for port in rest.split()]

    def do_stopsignal(self, rest, installed):
        assert rest == "SIGTERM"

    def do_healthcheck(self, rest, installed):
        self.health = json.loads(rest[rest.index("CMD") + 3:])

    def do_entrypoint(self, rest, installed):
        self.entrypoint = json.loads(rest)

    def do_cmd(self, rest, installed):
        self.command = json.loads(rest)

    def inside(self, words, env=None, mounts=()):
        """The command line that runs `words` in the image, as a container would: the process is the program itself."""
        uid, gid = self.user.split(":")
        script = "set -e; mount --bind {0} {0}; ".format(self.root)
        script += "".join("mount --bind %s %s%s; " % (source, self.root, to) for source, to in mounts)
        script += "mount -t proc proc %s/proc; mount -o remount,ro,bind %s; cd %s; exec " % (self.root, self.root, self.root)
        all_env = dict(self.env, PATH=PATH, **(env or {}))
        script += shlex.join(["chroot", str(self.root), "setpriv", "--reuid=" + uid, "--regid=" + gid, "--clear-groups",
                              "--no-new-privs", "--bounding-set=-all", "--inh-caps=-all", "env", "-i", "-C", self.workdir] +
                             ["%s=%s" % one for one in all_env.items()] + list(words))
        return ["unshare", "-m", "--propagation", "private", "/bin/sh", "-c", script]


class Container(Node):
    """A node in the image, on ports of its own: those of the image may be taken here."""

    def __init__(self, image, folder, env=None, mounts=()):
        super().__init__(folder)
        self.image, self.image_env, self.data = image, env or {}, folder / "data"
        self.data.mkdir()
        uid, gid = image.user.split(":")
        os.chown(self.data, int(uid), int(gid))
        self.mounts = [(self.data, image.volumes[0])] + list(mounts)

    def start(self, ready=True):
        words = self.image.entrypoint + self.image.command + [
            "--port", str(self.port), "--management-port", str(self.management_port), "--prometheus-port", "0"]
        self.log_before = len(self.log)
        with open(self.log_file, "a") as log:
            self.process = subprocess.Popen(self.image.inside(words, self.image_env, self.mounts), env=clean_env(),
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if ready:
            self.await_ready(30)
        return self

    def health(self):
        return subprocess.run(self.image.inside(self.image.health, {"HERMES_URL": self.http_url}), env=clean_env(),
                              capture_output=True, text=True, timeout=60 * SLOW)


@pytest.fixture(scope="module")
def image(bare, work, installed):
    this = Image(copy_of(bare, work / "image"))
    this.build(installed)
    yield this
    shutil.rmtree(this.root, ignore_errors=True)


@pytest.fixture
def container(image, tmp_path):
    made = []

    def make(**kw):
        made.append(Container(image, tmp_path / ("c%d" % len(made)), **kw))
        return made[-1].start()

    yield make
    try:
        for this in made:
            this.stop()
    finally:
        for this in made:
            this.kill()


def test_tree(image):
    """What is in it: small, complete, with nothing of the build, and its user owns the data folder only."""
    size = int(run("sh", "-c", "tar -C %s -c . | gzip -1 | wc -c" % image.root))
    if size > SIZE_MAX:         # -9 makes it smaller, and takes long
        size = int(run("sh", "-c", "tar -C %s -c . | gzip -9 | wc -c" % image.root))
    assert size < SIZE_MAX
    assert "not found" not in run("chroot", image.root, "ldd", "/usr/bin/hermes")
    for name in ("gcc", "node", "make"):
        assert not (image.root / "usr/bin" / name).exists()
    uid = int(image.user.split(":")[0])
    owned = {path for path in run("find", image.root, "-xdev", "-uid", uid).split()}
    assert owned == {str(image.root) + "/var/lib/hermes", str(image.root) + "/var/log/hermes"}
    # no password of the build, no set-uid of ours
    assert (image.root / "etc/hermes/hermes.yml").read_text() == (TOP / "etc/hermes.yml").read_text()
    assert "uid=%d(hermes)" % uid in run("chroot", image.root, "id", "hermes")


@pytest.mark.parametrize("names", ["HERMES_DEFAULT", "RABBITMQ_DEFAULT"])
def test_starts_healthy_with_its_account(container, image, names):
    this = container(env={names + "_USER": "app", names + "_PASS": "secret"})
    assert this.status("Uid") == int(image.user.split(":")[0])
    with open("/proc/%d/status" % this.pid) as status:
        assert re.search(r"^CapEff:\s+0+$", status.read(), re.M)
    healthy = this.health()
    assert (healthy.returncode, healthy.stdout) == (0, "healthy\n"), healthy.stderr
    assert this.http("/api/whoami", user="app", password="secret")["tags"] == ["administrator"]
    assert not [user for user in this.http("/api/users", user="app", password="secret") if user["name"] != "app"]
    conn = this.pika("app", "secret")
    channel = conn.channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    channel.basic_publish("", "q", b"kept", pika.BasicProperties(delivery_mode=2))
    conn.close()
    this.stop()
    assert this.health().returncode == 1
    # another container on the same volume
    this.start()
    conn = this.pika("app", "secret")
    assert conn.channel().basic_get("q", auto_ack=True)[2] == b"kept"
    conn.close()


def test_compose_file(image):
    """Its ports, names and folders are those of the image; settings that it mounts are fine."""
    compose = yaml.safe_load((DOCKER / "compose.yml").read_text())
    service = compose["services"]["hermes"]
    assert {port.split(":")[0] for port in service["ports"]} == {"5672", "15672"}
    assert {int(port.split(":")[1]) for port in service["ports"]} < set(image.ports)
    mounts = dict(reversed(one.split(":")[:2]) for one in service["volumes"])
    assert mounts["/var/lib/hermes"] == "data" and "data" in compose["volumes"]
    assert (DOCKER / mounts[image.env["HERMES_CONFIG_FILE"]]).exists()
    assert (TOP / service["build"]["dockerfile"]).exists()
    assert set(service["environment"]) == {"HERMES_DEFAULT_USER", "HERMES_DEFAULT_PASS"}
    done = run(*image.inside(["hermes", "server", "--check", "-c", "/mnt/hermes.yml"], mounts=[(DOCKER, "/mnt")]))
    assert "/mnt/hermes.yml: fine" in done


def test_kubernetes_manifest(image):
    config, service, stateful = yaml.safe_load_all((TOP / "contrib/kubernetes/hermes.yml").read_text())
    pod = stateful["spec"]["template"]["spec"]
    box = pod["containers"][0]
    uid, gid = (int(n) for n in image.user.split(":"))
    assert (pod["securityContext"]["runAsUser"], pod["securityContext"]["fsGroup"]) == (uid, gid)
    ports = {port["name"]: port["containerPort"] for port in box["ports"]}
    assert set(ports.values()) <= set(image.ports)
    assert {port["targetPort"] for port in service["spec"]["ports"]} == set(ports)
    assert {mount["mountPath"] for mount in box["volumeMounts"]} == {"/etc/hermes", "/var/lib/hermes"}
    routes = (TOP / "mgmt/routes.def").read_text()
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert box[probe]["httpGet"]["port"] == "http"
        # a probe has no account
        assert 'ROUTE(GET, "%s", NOBODY' % box[probe]["httpGet"]["path"] in routes
    settings = image.root.parent / "kubernetes.yml"
    settings.write_text(config["data"]["hermes.yml"])
    assert run("chroot", image.root, "hermes", "version")
    assert hermes("server", "--check", "-c", settings).returncode == 0
