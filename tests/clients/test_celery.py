"""A stock Celery worker, results in files: tasks, retries, times, chords, priorities, remote control, its end.

CLIENTS_BROKER=HOST:PORT runs it against a broker that is there already; its queues are deleted first.
"""
# SPDX-License-Identifier: Apache-2.0
import datetime
import importlib
import os
import signal
import subprocess
import sys
import time

import pytest

from node import SLOW, Node, clean_env, wait_for
from programs import HERE, PYTHON, python_module

BROKER = os.environ.get("CLIENTS_BROKER")
WAIT = 20 * SLOW


class Worker:
    """celery worker, as a process of its own."""

    def __init__(self, folder, env, name, *options):
        self.log = folder / (name + ".log")
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(
                [PYTHON, "-m", "celery", "-A", "celery_tasks", "worker", "-n", name + "@test", "-l", "info"] + list(options),
                env=dict(env, PYTHONFAULTHANDLER="1"), cwd=HERE / "python", stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def await_ready(self):
        def ready():
            assert self.process.poll() is None, self.log.read_text()
            return " ready." in self.log.read_text()

        wait_for(ready, 30, "a worker that is ready")
        return self

    def end(self, sig=signal.SIGTERM):
        """What Celery calls a warm shutdown; the exit status."""
        self.process.send_signal(sig)
        try:
            return self.process.wait(2 * WAIT)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)    # where it stands goes into its log
            self.process.wait(WAIT)
            raise AssertionError("the worker does not end:\n" + self.log.read_text()) from None

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Office:
    """The broker, the application and its workers."""

    def __init__(self, folder, address):
        self.folder = folder
        (folder / "results").mkdir()
        self.diary = folder / "diary"
        self.diary.touch()
        self.workers = []
        self.env = clean_env({"CELERY_TEST_BROKER": "amqp://guest:guest@%s//" % address, "LC_ALL": "C.UTF-8",
                              "CELERY_TEST_FOLDER": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "C_FORCE_ROOT": "1"})
        os.environ.update({name: value for name, value in self.env.items() if name.startswith("CELERY_TEST_")})
        sys.path.insert(0, str(HERE / "python"))
        self.tasks = importlib.import_module("celery_tasks")
        self.app = self.tasks.app
        with self.app.connection_for_write() as conn:
            for name in self.app.amqp.queues:
                conn.default_channel.queue_delete(name)

    def worker(self, name, *options):
        worker = Worker(self.folder, self.env, name, *options)
        self.workers.append(worker)
        return worker

    def lines(self, *first):
        return [line for line in self.diary.read_text().splitlines() if line.startswith(" ".join(first))]

    def ready(self, queue):
        with self.app.connection_for_read() as conn:
            return conn.default_channel.queue_declare(queue, passive=True).message_count

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.app.close()
        sys.path.remove(str(HERE / "python"))


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    """With one worker of two processes on the first queue."""
    python_module("celery", "python3-celery")
    folder = tmp_path_factory.mktemp("celery")
    node = None if BROKER else Node(folder / "node").start()
    office = None
    try:
        office = Office(folder, BROKER or "127.0.0.1:%d" % node.port)
        office.worker("main", "-c", "2", "-Q", "celery").await_ready()
        yield office
        assert office.workers[0].end() == 0, office.workers[0].log.read_text()
        if node:
            assert node.running(), "the node ended:\n" + node.log[-4000:]
            node.stop()
    finally:
        if office:
            office.close()
        if node:
            node.kill()


def test_results(office):
    answers = [office.tasks.add.delay(number, 1) for number in range(50)]
    assert [answer.get(WAIT, interval=0.02) for answer in answers] == list(range(1, 51))


def test_retries(office):
    answers = [office.tasks.third_time.delay(name) for name in ("one", "two")]
    assert [answer.get(WAIT, interval=0.02) for answer in answers] == [2, 2]
    for name in ("one", "two"):
        assert office.lines("try", name) == ["try %s %d" % (name, number) for number in range(3)]


def test_a_time_to_run(office):
    """Those that wait do not keep others away: the worker raises its prefetch count for them."""
    due = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=4)
    later = [office.tasks.when.apply_async(("later%d" % number,), eta=due) for number in range(20)]
    soon = [office.tasks.when.delay("soon%d" % number) for number in range(20)]
    soon = [answer.get(WAIT, interval=0.02) for answer in soon]
    later = [answer.get(WAIT, interval=0.02) for answer in later]
    assert min(later) >= due.timestamp()
    assert len(office.lines("ran")) == 40
    if max(soon) >= due.timestamp():
        assert SLOW > 1, "tasks without a time waited for those with one"


def test_chord(office):
    from celery import chord, group
    answer = chord([office.tasks.add.s(number, number) for number in range(10)], office.tasks.total.s()).delay()
    assert answer.get(WAIT, interval=0.02) == 90
    chain = (office.tasks.add.s(1, 2) | office.tasks.add.s(3)).delay()
    several = group([office.tasks.add.s(number, 0) for number in range(5)]).delay()
    assert chain.get(WAIT, interval=0.02) == 6
    assert several.get(WAIT, interval=0.02) == [0, 1, 2, 3, 4]


def test_priorities(office):
    """A worker that takes one at a time finds the most urgent first, and equals in their order."""
    given = [(name, priority) for name, priority in zip("abcdefgh", (0, 5, 9, 5, 0, 9, 1, 3))]
    answers = [office.tasks.when.apply_async((name,), queue="urgent", priority=priority) for name, priority in given]
    worker = office.worker("urgent", "-P", "solo", "-Q", "urgent", "--prefetch-multiplier", "1", "-O", "fair")
    for answer in answers:
        answer.get(WAIT + 10, interval=0.02)
    order = [line.split()[1] for line in office.lines("ran") if line.split()[1] in "abcdefgh"]
    assert order == [name for name, _ in sorted(given, key=lambda each: -each[1])]
    assert worker.end() == 0, worker.log.read_text()


def test_remote_control(office):
    control = office.app.control
    assert control.ping(destination=["main@test"], timeout=WAIT, limit=1) == [{"main@test": {"ok": "pong"}}]
    inspect = control.inspect(destination=["main@test"], timeout=WAIT, limit=1)
    queues = inspect.active_queues()["main@test"]
    assert [queue["name"] for queue in queues] == ["celery"]
    assert "celery_tasks.add" in inspect.registered()["main@test"]
    # A task that waits for its time is seen, and called off.
    later = office.tasks.when.apply_async(("never",), countdown=300)
    wait_for(lambda: inspect.scheduled()["main@test"], 10, "a task that waits")
    control.revoke(later.id, destination=["main@test"], reply=True, timeout=WAIT, limit=1)
    wait_for(lambda: later.id in (inspect.revoked() or {}).get("main@test", ()), 10, "a task that is called off")
    control.add_consumer("last", destination=["main@test"], reply=True, timeout=WAIT, limit=1)
    assert office.tasks.add.apply_async((20, 22), queue="last").get(WAIT, interval=0.02) == 42
    control.cancel_consumer("last", destination=["main@test"], reply=True, timeout=WAIT, limit=1)
    # The worker answers before it has forgotten the queue.
    wait_for(lambda: [queue["name"] for queue in inspect.active_queues()["main@test"]] == ["celery"], 10,
             "a worker without the queue")


def test_warm_shutdown(office):
    """What runs is done to its end; what was fetched and not begun goes back, and the next worker has it."""
    answers = [office.tasks.slow.apply_async(("s%d" % number, 1), queue="last") for number in range(6)]
    first = office.worker("first", "-c", "1", "-Q", "last")
    wait_for(lambda: office.lines("begin", "s0"), 30, "the first of them")
    assert first.end() == 0, first.log.read_text()
    assert office.lines("end") == office.lines("end", "s0") == ["end s0"]
    ready = office.ready("last")
    assert ready in (5, 6)          # on a busy machine a worker may end before it has acknowledged what it did: then it comes again
    second = office.worker("second", "-c", "5", "-Q", "last")
    assert [answer.get(WAIT + 10, interval=0.02) for answer in answers] == ["s%d" % number for number in range(6)]
    assert second.end() == 0, second.log.read_text()
    assert sorted(office.lines("begin")) == ["begin s0"] * (ready - 5) + ["begin s%d" % number for number in range(6)]
