"""The folders of a state, as hosts, Java, its tasks and the broker leave them."""

import os
import stat
import time

import pytest
from confluent_kafka import Producer

from sojourn.decide.plan import Plan
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from spark import shop
from spark.test_application import topology

pytestmark = pytest.mark.spark
DEADLINE_S = 90


@pytest.fixture
def open_to_all():
    """Let everybody do everything with new files, unless the code says otherwise."""
    before = os.umask(0)
    yield
    os.umask(before)


def exposed(folder):
    """Return what others could see in a folder, with its mode."""
    modes = {path: stat.S_IMODE(path.lstat().st_mode) for path in [folder, *folder.rglob("*")]}
    return {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077}


def order(engine):
    producer = Producer({**engine.clients, "log_level": 0})
    producer.produce("all-orders", b'{"item": "tea", "number": 2}')
    assert producer.flush(DEADLINE_S) == 0


def await_files(*patterns):
    """Wait until each folder has a file of a pattern."""
    until_s = time.monotonic() + DEADLINE_S
    for folder, pattern in patterns:
        while not list(folder.glob(pattern)):
            assert time.monotonic() < until_s, f"{folder} has no {pattern}"
            time.sleep(0.1)


@pytest.mark.usefixtures("jars", "open_to_all")
def test_nobody_else_sees_what_an_application_keeps(short_folder):
    state, shared = short_folder / "state", short_folder / "shared"
    settings = SparkSettings(state=state, shared_state=shared, batch_s=5.0)
    with SparkEngine(shop.app, "spark.shop:app", settings) as engine:
        engine.start(topology(shop.app), Plan.here(dict.fromkeys(shop.app.operators, 1)))
        order(engine)
        # offsets and commits of a part stay with its cuts; what tasks write is shared
        await_files(
            (state / "checkpoints" / "price", "commits/0"),
            (state / "checkpoints" / "price" / "part", "cuts/*"),
            (state / "broker" / "data", "all-orders-0/*.log"),
            (state / "logs", "*.log"),
            (shared / "checkpoints" / "sums", "state/0/0/*"),
            (shared / "checkpoints" / "sums", "commits/0"),
            (shared / "checkpoints" / "sink taxed-once", "memory/*"),
        )
        assert {path.name for path in (state / "checkpoints").iterdir()} == {
            "dear",
            "price",
            "misfits of sums",
        }
        assert exposed(state) == exposed(shared) == {}
