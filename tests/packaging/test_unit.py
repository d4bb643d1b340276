"""The systemd unit as `make install` leaves it, and the files beside it."""
# SPDX-License-Identifier: Apache-2.0
import os
import re
import shutil
import signal
import subprocess

import pytest

from node import BINARY, TOP, clean_env, wait_for

#: the exposure that systemd-analyze may find, in tenths; 0 is none, 100 all
EXPOSURE = 15


def run(*args, **kw):
    return subprocess.run([str(a) for a in args], capture_output=True, text=True, timeout=60, **kw)


def unit_text():
    text = (TOP / "etc/hermes.service.in").read_text()
    return text.replace("@bindir@", str(BINARY.parent)).replace("@hermesconfdir@", "/etc/hermes")


@pytest.fixture
def unit(tmp_path):
    """The unit, with the program that is tested."""
    file = tmp_path / "hermes.service"
    file.write_text(unit_text())
    return file


def test_verify(unit):
    done = run("systemd-analyze", "verify", "--man=no", unit)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_verify_finds_mistakes(unit):
    unit.write_text(unit.read_text().replace("ProtectSystem=strict", "ProtectSystem=perhaps"))
    assert run("systemd-analyze", "verify", "--man=no", unit).stderr != ""


def test_exposure(unit):
    done = run("systemd-analyze", "security", "--offline=true", "--threshold=%d" % EXPOSURE, unit)
    assert done.returncode == 0, done.stdout + done.stderr
    exposed = re.findall(r"^✗ (\S+)", done.stdout, re.M)
    # it speaks to the network, and reads /proc/meminfo
    assert set(exposed) <= {"PrivateNetwork=", "RestrictAddressFamilies=~AF_(INET|INET6)", "IPAddressDeny=", "ProcSubset=",
                            "DeviceAllow=", "RestrictAddressFamilies=~AF_UNIX", "RootDirectory=/RootImage="}, done.stdout


def allowed_calls():
    """What the unit's SystemCallFilter= lets through."""
    sets = {}
    listing = run("systemd-analyze", "syscall-filter", env=dict(os.environ, SYSTEMD_COLORS="0", SYSTEMD_PAGER="")).stdout
    for block in listing.split("\n\n"):
        lines = [line.strip() for line in block.splitlines() if line.strip() and not line.strip().startswith("#")]
        if lines and lines[0].startswith("@"):
            sets[lines[0]] = lines[1:]

    def members(name):
        return {call for one in sets[name] for call in (members(one) if one[0] == "@" else [one])}

    calls = set()
    for line in re.findall(r"^SystemCallFilter=(.*)", unit_text(), re.M):
        names = {call for word in line.lstrip("~").split() for call in members(word)}
        calls = calls - names if line.startswith("~") else calls | names
    return calls


@pytest.mark.release
def test_system_calls(node, tmp_path):
    """All that the node asks the kernel for passes the unit's filter."""
    trace = tmp_path / "trace"
    this = node(start=False)
    command = [str(a) for a in ["strace", "-f", "-qq", "-e", "signal=none", "-o", trace, BINARY] + this.args]
    with open(this.log_file, "w") as log:
        this.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=this.env)
    this.await_ready(60)
    conn = this.pika()
    channel = conn.channel()
    channel.queue_declare("q", durable=True)
    channel.confirm_delivery()
    for body in (b"x", b"y" * 200000):
        channel.basic_publish("", "q", body)
    assert channel.basic_get("q", auto_ack=True)[2] == b"x"
    conn.close()
    this.http("/api/users/new", "PUT", {"password": "p", "tags": ""})
    this.http("/api/hermes/snapshot", "POST", {"path": str(tmp_path / "snapshot")})
    tracer = this.process.pid
    server = int(run("pgrep", "-P", tracer).stdout.split()[0])
    os.kill(server, signal.SIGHUP)
    this.await_log("settings were read again", 30)
    os.kill(server, signal.SIGTERM)
    this.stop(sig=None)
    calls = set(re.findall(r"^\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)", trace.read_text(errors="replace"), re.M))
    assert len(calls) > 40 and {"fdatasync", "accept4", "epoll_wait"} & calls
    assert calls - allowed_calls() - {"exit"} == set()


def test_logrotate_and_what_systemd_makes():
    """The files beside the unit speak of the folders and the user that it has."""
    unit = unit_text()
    user = re.search(r"^User=(.*)", unit, re.M).group(1)
    folders = ["/var/lib/" + re.search(r"^StateDirectory=(.*)", unit, re.M).group(1),
               "/var/log/" + re.search(r"^LogsDirectory=(.*)", unit, re.M).group(1)]
    made = re.findall(r"^d (\S+) 0\d+ (\S+) (\S+)", (TOP / "etc/hermes.tmpfiles").read_text(), re.M)
    backups = re.search(r"^ReadWritePaths=-(.*)", unit, re.M).group(1)      # "-": it need not be there
    assert made == [(folder, user, user) for folder in folders + [backups]]
    assert "install -d -m 0700 -o %s -g %s %s\n" % (user, user, backups) in (TOP / "contrib/debian/hermes.postinst").read_text()
    assert re.search(r"^u %s -" % user, (TOP / "etc/hermes.sysusers").read_text(), re.M)
    rotate = (TOP / "etc/hermes.logrotate").read_text()
    assert re.search(r"^%s/\*\.log \{" % folders[1], rotate, re.M)
    assert "su %s %s" % (user, user) in rotate and "hermes.service" in rotate
    assert folders[0] in unit


def test_log_is_rotated(node, tmp_path):
    """logrotate itself, with this node's folder in place of the unit's."""
    if shutil.which("logrotate", path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
        pytest.skip("no logrotate")
    logs = tmp_path / "logs"
    logs.mkdir(mode=0o750)
    this = node(settings="log: {file: %s/hermes.log}\n" % logs, ready=False)
    log = logs / "hermes.log"
    wait_for(lambda: log.exists() and "agent is ready" in log.read_text(), 20)
    text = (TOP / "etc/hermes.logrotate").read_text().replace("/var/log/hermes", str(logs))
    text = re.sub(r"^\t(su .*|create .*)\n", "", text, flags=re.M)
    text = re.sub(r"pid=\$\(.*\)", "pid=%d" % this.pid, text)
    config = tmp_path / "logrotate"
    config.write_text(text)
    config.chmod(0o644)
    done = run("/usr/sbin/logrotate", "-f", "-s", tmp_path / "state", config, env=clean_env())
    assert done.returncode == 0, done.stderr
    wait_for(lambda: log.exists() and "settings were read again" in log.read_text(), 20)
    assert "agent is ready" in (logs / "hermes.log.1").read_text()
