"""Where Spark runs, and with which settings."""

import pytest

from sojourn.errors import BadFile, BadInput
from sojourn.spark.driver.master import OWNED, STREAMING, Master, read_conf
from sojourn.spark.driver.settings import SparkSettings

CORES = {"spark.executor.cores": "4"}


def test_a_local_master_is_what_it_always_was():
    ours = {"spark.local.dir": "/tmp/x", "spark.python.unix.domain.socket.dir": "/tmp/x"}
    assert Master().options(14, ours) == {
        "spark.master": "local[14]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.authenticate": "true",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        **ours,
        **STREAMING,
    }
    assert Master().cores is None
    assert SparkSettings().runs_on == Master()


@pytest.mark.parametrize(
    "url",
    ["spark://left:7077", "spark://left:7077,right:7077", "yarn", "k8s://https://left:443"],
)
def test_a_cluster_fails_a_task_once_and_lets_executors_leave(url):
    master = Master(url=url, spark={**CORES, "spark.executor.memory": "2g"})
    made = master.options(14, {"spark.local.dir": "/tmp/x"})
    assert made["spark.master"] == url
    assert made["spark.task.maxFailures"] == "1"
    assert made["spark.speculation"] == "false"
    assert made["spark.decommission.enabled"] == "true"
    assert made["spark.dynamicAllocation.enabled"] == "false"
    assert made["spark.executor.memory"] == "2g"
    assert made["spark.storage.blockManagerHeartbeatTimeoutMs"] == "30s"
    assert made.items() >= STREAMING.items()
    assert master.cores == 4


def test_on_a_cluster_addresses_and_authentication_are_the_users():
    master = Master(url="yarn", spark={**CORES, "spark.driver.host": "left"})
    made = master.options(14, {"spark.python.unix.domain.socket.dir": "/tmp/x"})
    assert made["spark.driver.host"] == "left"
    patient = Master(url="yarn", spark={**CORES, "spark.executor.heartbeatInterval": "20s"})
    assert patient.options(14, {})["spark.executor.heartbeatInterval"] == "20s"
    assert not made.keys() & {
        "spark.driver.bindAddress",
        "spark.authenticate",
        "spark.python.unix.domain.socket.dir",  # of this machine
    }


def test_a_trial_cluster_says_its_cores_itself():
    master = Master(url="local-cluster[2,3,1024]")
    assert master.cores == 3
    assert master.options(14, {})["spark.executor.cores"] == "3"


@pytest.mark.parametrize(
    ("url", "way_out"),
    [
        ("local[4]", "depends on the application; write local"),
        ("spark://left", "is not a master of Spark; write local, spark://HOST:PORT, yarn"),
        ("left:7077", "is not a master of Spark"),
        ("local-cluster[2]", "is not a master of Spark"),
        ("", "is not a master of Spark"),
    ],
)
def test_what_is_no_master_is_refused(url, way_out):
    with pytest.raises(BadInput, match=way_out):
        SparkSettings(master=url, spark=CORES)


@pytest.mark.parametrize(
    ("cores", "problem"),
    [
        ({}, "must be known on yarn; write --conf spark.executor.cores=4"),
        ({"spark.executor.cores": "1"}, "write 2 or more: one slot"),
        ({"spark.executor.cores": "many"}, "is 'many'; write 2 or more"),
    ],
)
def test_the_cores_of_executors_must_be_known(cores, problem):
    with pytest.raises(BadInput, match=problem):
        Master(url="yarn", spark=cores)


@pytest.mark.parametrize("key", OWNED)
def test_what_sojourn_must_set_itself_is_refused(key):
    with pytest.raises(BadInput, match=rf"{key} is set by Sojourn; .*{OWNED[key]}"):
        Master(spark={key: "x"})


def test_nothing_that_is_not_sparks_is_taken_for_it():
    with pytest.raises(BadInput, match=r"'executor.cores' is not a setting of Spark"):
        Master(spark={"executor.cores": "4"})


def test_settings_may_be_secrets_and_are_not_shown():
    assert "hidden" not in repr(SparkSettings(spark={"spark.authenticate.secret": "hidden"}))
    with pytest.raises(BadInput, match="--conf number 2 is not key=value") as caught:
        read_conf(["spark.x=1", "hidden"])
    assert "hidden" not in str(caught.value)


def test_files_to_ship_must_be_there_and_importable(tmp_path):
    module = tmp_path / "shop.py"
    with pytest.raises(BadFile, match=r"shop\.py: there is no such file"):
        Master(py_files=(module,))
    module.touch()
    assert Master(py_files=(module,)).py_files == (module,)
    with pytest.raises(BadInput, match=r"cannot be shipped; write a file that ends in \.py"):
        Master(py_files=(tmp_path / "shop.whl",))
