"""The master of Spark, this machine or a cluster, and the settings that a user adds."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sojourn.errors import BadFile, BadInput
from sojourn.text import shown

LOCAL = "local"

TRANSFER_BYTES = 8192
"""The size of the chunks in which Spark sends records to Python, approximately."""

# Each was found by measurement. If any one is missing, records wait for later records, or for
# the end of the batch.
STREAMING: Mapping[str, str] = {
    # Python operators are not on the allowlist of real-time mode; the list only guards
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # otherwise Java reads from Python only after it has written the whole batch to it
    "spark.python.udf.pipelined.enabled": "true",
    # over TCP, delayed acknowledgements cost 40 ms for each hop
    "spark.python.unix.domain.socket.enabled": "true",
    # the chunks that are sent to Python; see `sojourn.spark.driver.query.real_time`
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(TRANSFER_BYTES),
    # Java writes to Python when its buffer is full. The padding of a record, its last column,
    # is larger than the buffer and so flushes it. Python flushes its own after each batch.
    "spark.buffer.size": str(TRANSFER_BYTES // 2),
    "spark.sql.execution.pandas.udf.buffer.size": str(TRANSFER_BYTES // 2),
}
"""The settings of a session in which Python operators stream record by record."""

# A standalone cluster may have several masters, one of which leads.
_STANDALONE = re.compile(r"spark://[^\s:,/]+:\d+(,[^\s:,/]+:\d+)*")
_KUBERNETES = re.compile(r"k8s://\S+")
# Executors, cores of each, and MiB of each: processes on this machine.
_TRIAL = re.compile(r"local-cluster\[\s*\d+\s*,\s*(\d+)\s*,\s*\d+\s*\]")
_CORES = "spark.executor.cores"
# One slot for a feed, and one that stays free to start the agent.
_FEWEST_CORES = 2
_PACKAGES = (".py", ".zip", ".egg")

_SAME_MACHINE: Mapping[str, str] = {
    # other users of this machine can reach its ports; for a local master Java makes the secret
    "spark.authenticate": "true",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
_MANY_MACHINES: Mapping[str, str] = {
    # a task that fails is run again by its query, from a cut, and never twice in parallel
    "spark.task.maxFailures": "1",
    "spark.speculation": "false",
    # needs several attempts per task, and would keep tasks away from nodes that recovered
    "spark.excludeOnFailure.enabled": "false",
    # executors that are given back finish their tasks
    "spark.decommission.enabled": "true",
    # the loop decides the number of executors
    "spark.dynamicAllocation.enabled": "false",
}
# An executor whose machine has vanished keeps its slots until Spark notices, by default after
# minutes; meanwhile a batch that is retried may wait for a task that was sent there.
_NOTICED: Mapping[str, str] = {
    "spark.executor.heartbeatInterval": "5s",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "30s",
    "spark.network.timeoutInterval": "5s",
}
# YARN and Kubernetes end an application that has lost twice as many executors as it has. On
# machines that may be taken away (spot instances) that would only be a matter of time.
_LOST: Mapping[str, str] = {"spark.executor.maxNumFailures": str(2**31 - 1)}
# Folders of this machine, which executors elsewhere do not have.
_FOLDERS_HERE = frozenset({"spark.python.unix.domain.socket.dir"})

OWNED: Mapping[str, str] = {
    **dict.fromkeys([*STREAMING, *_MANY_MACHINES], "leave it out"),
    **dict.fromkeys(_FOLDERS_HERE, "leave it out"),
    "spark.app.name": "it is the name of the application; leave it out",
    "spark.jars": "name further jars in spark.jars.packages",
    "spark.local.dir": "set TMPDIR to use another folder",
    "spark.master": "write --master",
    "spark.submit.pyFiles": "write --py-files",
}
"""Settings of Spark that Sojourn sets itself, each with the user's alternative."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Master:
    """The master of Spark, and the user's settings for its session.

    >>> Master(url="spark://left:7077")
    Traceback (most recent call last):
    ...
    sojourn.errors.BadInput: spark.executor.cores must be known on spark://left:7077; ...
    """

    url: str = LOCAL
    """`local`, `spark://HOST:PORT`, `yarn`, `k8s://URL`, or `local-cluster[N,CORES,MIB]`."""
    spark: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Settings of Spark, passed through."""
    py_files: tuple[Path, ...] = ()
    """Modules and packages that are shipped to every executor."""

    def __post_init__(self) -> None:
        if self.url.startswith("local["):
            raise BadInput(
                f"{shown(self.url)} sets the number of parallel tasks, which depends on the "
                "application; write local"
            )
        known = (_STANDALONE, _KUBERNETES, _TRIAL)
        if self.url not in (LOCAL, "yarn") and not any(
            form.fullmatch(self.url) for form in known
        ):
            raise BadInput(
                f"{shown(self.url)} is not a master of Spark; write local, spark://HOST:PORT, "
                "yarn or k8s://URL"
            )
        for key in self.spark:
            if key in OWNED:
                raise BadInput(f"{key} is set by Sojourn; {OWNED[key]}")
            if not key.startswith("spark."):
                raise BadInput(
                    f"{shown(key)} is not a setting of Spark; their names begin with spark."
                )
        for file in self.py_files:
            if file.suffix not in _PACKAGES:
                raise BadInput(
                    f"{shown(str(file))} cannot be shipped; write a file that ends in "
                    f"{', '.join(_PACKAGES[:-1])} or {_PACKAGES[-1]}"
                )
            if not file.is_file():
                raise BadFile(str(file), "there is no such file", "check the path")
        self._check_cores()

    @property
    def is_local(self) -> bool:
        """Whether all tasks run in the driver: there are no executors."""
        return self.url == LOCAL

    @property
    def cores(self) -> int | None:
        """The cores of each executor; None if there are no executors."""
        given = self._given_cores()
        return None if given is None or self.is_local else int(given)

    def options(self, slots: int, options: Mapping[str, str]) -> dict[str, str]:
        """Return the settings of a session: *options* are Sojourn's, *slots* those of `local`.

        On a cluster, users configure the address of the driver and the authentication of
        connections; the defaults are Spark's.
        """
        common = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
        if self.is_local:
            return {
                **common,
                **_SAME_MACHINE,
                **options,
                **self.spark,
                **STREAMING,
                "spark.master": f"local[{slots}]",
            }
        ours = {key: value for key, value in options.items() if key not in _FOLDERS_HERE}
        return {
            **common,
            **ours,
            **_NOTICED,
            **_LOST,
            **self.spark,
            **STREAMING,
            **_MANY_MACHINES,
            _CORES: str(self.cores),
            "spark.master": self.url,
        }

    def _given_cores(self) -> str | None:
        trial = _TRIAL.fullmatch(self.url)
        return self.spark.get(_CORES, None if trial is None else trial[1])

    def _check_cores(self) -> None:
        if self.is_local:
            return
        given = self._given_cores()
        if given is None:
            raise BadInput(
                f"{_CORES} must be known on {self.url}; write --conf {_CORES}=4, or as many "
                "as an executor should have"
            )
        if not given.isascii() or not given.isdigit() or int(given) < _FEWEST_CORES:
            raise BadInput(
                f"{_CORES} is {shown(given)}; write {_FEWEST_CORES} or more: one slot of each "
                "executor stays free to start its processors"
            )


def read_conf(texts: Iterable[str]) -> dict[str, str]:
    """Return the settings of Spark in *texts*, each `key=value`.

    >>> read_conf(["spark.executor.cores=4"])
    {'spark.executor.cores': '4'}
    """
    return dict(
        read_pair(text, f"--conf number {number}", "spark.executor.cores=4")
        for number, text in enumerate(texts, start=1)
    )


def read_pair(text: str, place: str, example: str) -> tuple[str, str]:
    """Return the key and the value in *text*; errors name its *place* and an *example*."""
    key, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not key:
        # the text may be a secret, so it is not shown
        raise BadInput(f"{place} is not key=value; write {example}")
    return key, value
