"""A RabbitMQ 3.10 on ports of its own, from Debian 12's packages, without installing any of them.

Usage: rabbit.py FOLDER PORT [COMMAND [ARGUMENT]...]

Packages are downloaded to FOLDER and unpacked there, unless they are there already; apt-get does it, so
that root is not needed, but the network and Debian 12's package lists (apt-get update) are. The node's
data is in a temporary folder. Without a COMMAND it runs until it is interrupted; with one, as long as
that does. PORT + 1 is for distribution; no other port is opened, and only loopback is listened on.
"""
# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

#: what rabbitmq-server depends on, as far as it runs without being installed
PACKAGES = ("rabbitmq-server erlang-base erlang-asn1 erlang-crypto erlang-eldap erlang-inets erlang-mnesia erlang-os-mon"
            " erlang-parsetools erlang-public-key erlang-runtime-tools erlang-ssl erlang-syntax-tools erlang-tools"
            " erlang-xmerl libsctp1").split()
VERSION = "3.10"
START_LIMIT = 120       # seconds
#: RabbitMQ's own settings where its defaults are minutes
SETTINGS = {
    "dead_letter_worker_publisher_confirm_timeout": 250,        # until a dead letter that nobody took is sent again
    "channel_tick_interval": 200,                               # so often it looks for deliveries held too long
}


def unpack(folder):
    """Unpacks the packages below `folder`; returns the root of what was unpacked."""
    root = pathlib.Path(folder).resolve() / "root"
    if (root / "complete").exists():
        return root
    debs = root.parent / "debs"
    debs.mkdir(parents=True, exist_ok=True)
    got = subprocess.run(["apt-get", "-q", "download"] + PACKAGES, cwd=debs, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT)
    if got.returncode:
        raise SystemExit("RabbitMQ's packages cannot be had (is it Debian 12, apt-get update done?):\n" + got.stdout)
    for deb in sorted(debs.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", deb, root], check=True)
    # Debian's starter knows one place only.
    starter = root / "usr/lib/erlang/bin/erl"
    starter.write_text(starter.read_text().replace("ROOTDIR=/usr/lib/erlang\n", 'ROOTDIR="%s"\n' % (root / "usr/lib/erlang")))
    (root / "complete").touch()
    return root


class Rabbit:
    """`settings` are numbers of RabbitMQ's application, in milliseconds where they are times."""

    def __init__(self, folder, port, **settings):
        self.root = unpack(folder)
        self.port = port
        self.settings = dict(SETTINGS, **settings)
        self.home = tempfile.TemporaryDirectory(prefix="rabbit-", ignore_cleanup_errors=True)
        self.processes = []

    def start(self):
        home = pathlib.Path(self.home.name)
        server, = (self.root / "usr/lib/rabbitmq/lib").glob("rabbitmq_server-%s.*" % VERSION)
        erlang = self.root / "usr/lib/erlang"
        (home / "plugins").write_text("[rabbitmq_consistent_hash_exchange].\n")
        (home / "rabbitmq.conf").write_text("listeners.tcp.1 = 127.0.0.1:%d\n" % self.port)
        # The disk may be fuller than RabbitMQ likes it, and that is not what is compared.
        with open(home / "rabbitmq.conf", "a") as conf:
            conf.write("disk_free_limit.absolute = 50MB\nlog.console = false\n")
        (home / "advanced.config").write_text("[{rabbit, [%s]}].\n" % ", ".join("{%s, %d}" % each for each in self.settings.items()))
        env = {
            "HOME": str(home), "LANG": "C.UTF-8",
            "PATH": "%s:%s" % (erlang / "bin", os.environ.get("PATH", "/usr/bin:/bin")),
            "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(self.port + 2),
            "RABBITMQ_NODENAME": "differential%d@localhost" % self.port, "RABBITMQ_DIST_PORT": str(self.port + 1),
            "RABBITMQ_MNESIA_BASE": str(home / "data"), "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"), "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null", "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
        }
        # epmd is ours, or RabbitMQ would leave one behind.
        with open(home / "output", "w") as output:
            self.processes = [subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                               start_new_session=True)
                              for command in (["epmd"], [str(server / "sbin/rabbitmq-server")])]
        deadline = time.monotonic() + START_LIMIT
        while not self.answers():
            if self.processes[1].poll() is not None or time.monotonic() > deadline:
                raise SystemExit("RabbitMQ did not start:\n" + (home / "output").read_text()[-4000:])
            time.sleep(0.2)
        return self

    def answers(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), 5) as sock:
                sock.sendall(b"AMQP\x00\x00\x09\x01")
                return sock.recv(1) == b"\x01"
        except OSError:
            return False

    def stop(self):
        for process in reversed(self.processes):
            for sig in (signal.SIGTERM, signal.SIGKILL):
                try:
                    os.killpg(process.pid, sig)
                    process.wait(20)
                except (ProcessLookupError, subprocess.TimeoutExpired):
                    pass
        self.processes = []
        self.home.cleanup()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with Rabbit(sys.argv[1], int(sys.argv[2])) as rabbit:
        print("RabbitMQ answers on port %d" % rabbit.port, flush=True)
        try:
            return subprocess.call(sys.argv[3:]) if sys.argv[3:] else rabbit.processes[1].wait()
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main())
