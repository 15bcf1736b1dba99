"""A Celery application as its users write it. The environment says which broker it is for, and where results go."""

import os
import time
from pathlib import Path

from celery import Celery

FOLDER = Path(os.environ["CELERY_FOLDER"])

app = Celery("tasks", broker=os.environ["CELERY_URL"], backend=f"file://{FOLDER}/results")
app.conf.update(
    broker_transport_options={
        "queue_name_prefix": os.environ["CELERY_PREFIX"],
        "peek_lock_seconds": 5,
        "wait_time_seconds": 1,
    },
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_routes={"tasks.report": {"queue": "reports"}},
    worker_prefetch_multiplier=1,
    broker_connection_retry_on_startup=True,
)


@app.task
def add(a, b):
    return a + b


@app.task
def report(name):
    return f"report {name}"


@app.task(bind=True, max_retries=3, default_retry_delay=0)
def flaky(self, fails):
    """Fails `fails` times, and then says how often it was tried."""
    if self.request.retries < fails:
        raise self.retry(exc=ValueError("not yet"))
    return self.request.retries


@app.task
def broken():
    raise ValueError("never")


@app.task
def interrupted(name):
    """Notes that it has begun. The first time it never ends; its worker is killed meanwhile."""
    begun = FOLDER / f"{name}-begun"
    if not begun.exists():
        begun.touch()
        while True:
            time.sleep(1)
    return "finished"
