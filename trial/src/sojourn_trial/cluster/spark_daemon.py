"""Commands, environment and log lines of Spark's own master and worker."""

import os
import re
from pathlib import Path

import pyspark

from sojourn.app.loading import import_path
from sojourn_trial.cluster.machine_processes import MARK

_SPARK = Path(pyspark.__file__).parent
_CLASS = str(_SPARK / "bin" / "spark-class")
_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_PAGE = re.compile(r"MasterWebUI.*started at (http://\S+)")
_REGISTERED = "Successfully registered with master"


def master_command(address: str) -> list[str]:
    """Return the command of a master on free ports of *address*."""
    return [
        *(_CLASS, "org.apache.spark.deploy.master.Master"),
        *("--host", address, "--port", "0", "--webui-port", "0"),
    ]


def worker_command(
    master: str, address: str, folder: Path, *, cores: int, memory_mb: int
) -> list[str]:
    """Return the command of a worker on free ports of *address*, which works in *folder*."""
    return [
        *(_CLASS, "org.apache.spark.deploy.worker.Worker", master),
        *("--host", address, "--port", "0", "--webui-port", "0"),
        *("--cores", str(cores), "--memory", f"{memory_mb}m", "--work-dir", str(folder)),
    ]


def daemon_environment(mark: str, address: str, folder: Path) -> dict[str, str]:
    """Return the environment of a daemon; temporary files of executors go to *folder*.

    SPARK_ variables of the user are dropped, because they are for another cluster.
    """
    given = {name: value for name, value in os.environ.items() if not name.startswith("SPARK_")}
    return {
        **given,
        MARK: mark,
        "PYTHONPATH": import_path(),
        "SPARK_HOME": str(_SPARK),
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_LOCAL_IP": address,  # the web page and executors listen on it, too
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:-UsePerfData",
        "SPARK_WORKER_OPTS": "-Dspark.worker.cleanup.enabled=true",
    }


def started_at(log: Path) -> tuple[str, str] | None:
    """Return the URLs of master and web page; None until they are in the log."""
    said = log.read_text(errors="replace")
    url, page = _URL.search(said), _PAGE.search(said)
    return (url[1], page[1]) if url and page else None


def registered(log: Path) -> bool | None:
    """Return True once the log of a worker says that it has registered; None until then."""
    return _REGISTERED in log.read_text(errors="replace") or None
