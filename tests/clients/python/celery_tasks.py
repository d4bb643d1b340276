"""An application for Celery, as small ones look: tasks that leave a line in a file when they run."""
# SPDX-License-Identifier: Apache-2.0
import os
import time

import celery
import kombu

FOLDER = os.environ["CELERY_TEST_FOLDER"]
DIARY = os.path.join(FOLDER, "diary")

app = celery.Celery("celery_tasks")
app.conf.update(
    broker_url=os.environ["CELERY_TEST_BROKER"],
    result_backend="file://" + os.path.join(FOLDER, "results"),
    broker_transport_options={"confirm_publish": True},
    broker_connection_retry=False,
    task_queues=[kombu.Queue("celery"), kombu.Queue("urgent", queue_arguments={"x-max-priority": 9}), kombu.Queue("last")],
    worker_hijack_root_logger=False,
    result_chord_retry_interval=0.2,
)


def note(*words):
    """One short line is written at once, whoever writes as well."""
    with open(DIARY, "a") as diary:
        diary.write(" ".join(map(str, words)) + "\n")


@app.task
def add(a, b):
    return a + b


@app.task
def total(numbers):
    return sum(numbers)


@app.task(bind=True, max_retries=5)
def third_time(self, name):
    note("try", name, self.request.retries)
    if self.request.retries < 2:
        raise self.retry(countdown=0.1)
    return self.request.retries


@app.task
def when(name):
    now = time.time()
    note("ran", name)
    return now


@app.task(acks_late=True)
def slow(name, seconds):
    note("begin", name)
    time.sleep(seconds)
    note("end", name)
    return name
