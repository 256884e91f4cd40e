"""A Spark session in which Python operators stream record by record.

Each setting was found by measuring; without any one of them records wait for others, or for
the end of a batch.
"""

import os
import sys
from collections.abc import Mapping

from pyspark.sql import SparkSession

from sojourn.spark.jvm import Jars

__all__ = ["new_session"]

_STREAMING = {
    # Python operators are not on Real-Time Mode's list; the list is a guard, no mechanism
    "spark.sql.streaming.realTimeMode.allowlistCheck": "false",
    # without it what Python yields is read only after all of a batch has been written to it
    "spark.python.udf.pipelined.enabled": "true",
    # over TCP, delayed acknowledgements cost 40 ms for each hop
    "spark.python.unix.domain.socket.enabled": "true",
    # records would wait until a buffer is full
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.buffer.size": "4",
    "spark.sql.execution.pandas.udf.buffer.size": "4",
}


def new_session(
    name: str, *, jars: Jars, slots: int, options: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session on this machine with *slots* tasks at once.

    Every feed holds a slot for as long as it runs.
    """
    # workers must run the same Python, with the same packages
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{slots}]").appName(name)
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.jars": ",".join(map(str, jars.spark)),
        **_STREAMING,
        **(options or {}),
    }
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session
