"""A cluster one of whose machines does not have the shared folder, and then has it."""

import subprocess
import time
from pathlib import Path

import pytest

from sojourn.decide.plan import Plan
from sojourn.errors import BadFile
from sojourn.spark.driver.kafka.broker import Broker
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.cluster.trial_network import why_not
from spark import shop
from spark.test_application import topology

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]
DEADLINE_S = 180


def on_machine(worker, *command):
    """Run a command with the file systems of a worker, which has mounts of its own."""
    said = subprocess.run(
        ["ip", "netns", "pids", worker.namespace], capture_output=True, text=True, check=True
    )
    (pid, *_) = said.stdout.split()
    # mounting anything here would be of this machine, and stay
    assert Path(f"/proc/{pid}/ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink()
    inside = ["nsenter", "--mount", f"--target={pid}", "--", *map(str, command)]
    done = subprocess.run(inside, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"file systems cannot be mounted here: {done.stderr.strip()}")


def test_a_start_names_the_node_that_does_not_have_the_folder(jars, short_folder):
    if reason := why_not():
        pytest.skip(reason)
    state, shared = short_folder / "state", short_folder / "shared"
    shared.mkdir()
    cluster = TrialCluster(nodes=2, cores=8, folder=short_folder / "cluster")
    with cluster, Broker(jars=jars, secured=False, host=cluster.driver_address) as broker:
        broker.create_topics({"all-orders": 1})
        settings = SparkSettings(
            servers=broker.bootstrap_servers,
            state=state,
            shared_state=shared,
            batch_s=5.0,
            master=cluster.master,
            spark={
                "spark.driver.host": cluster.driver_address,
                "spark.executor.cores": "8",
                "spark.executor.memory": "600m",
            },
        )
        plan = Plan.here(dict.fromkeys(shop.app.operators, 1))
        without = cluster.workers[1]
        on_machine(without, "mount", "-t", "tmpfs", "none", shared)
        with SparkEngine(shop.app, "spark.shop:app", settings) as engine:
            told = rf"is not shared by executor-\d on {without.address}: a different folder is"
            with pytest.raises(
                BadFile, match=rf"{told} mounted there; tasks of sink taxed-once"
            ):
                engine.start(topology(shop.app), plan)
        on_machine(without, "umount", shared)
        with SparkEngine(shop.app, "spark.shop:app", settings) as engine:
            engine.start(topology(shop.app), plan)
            until_s = time.monotonic() + DEADLINE_S
            # what an executor has written is here
            while not list((shared / "checkpoints" / "sums" / "state").rglob("*")):
                assert time.monotonic() < until_s
                time.sleep(0.1)
            assert not engine.health().failure
