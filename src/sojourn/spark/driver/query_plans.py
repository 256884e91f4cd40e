"""The plans that Spark makes for an application's queries; none of them is started."""

import re
import tempfile
from pathlib import Path
from typing import Any

from sojourn.app.application import App
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.java import find_java
from sojourn.spark.driver.jvm.session import end_session, new_session
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.query.query_builder import QueryBuilder
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.state.checkpoints import Checkpoints

__all__ = ["query_plans"]

# Planning needs an address, but connects to no broker.
_NOWHERE = "localhost:9092"
# Added by `sojourn.spark.driver.query.transfer`.
_PADDING = re.compile("0x0{100,}")


def query_plans(app: App, address: str) -> dict[str, str]:
    """Return the physical plans of queries by name: of parts, and of Spark's own operators.

    Raise `EngineError` if there is no Java.
    """
    find_java()
    app.check()
    layout = Layout(app, address)
    with tempfile.TemporaryDirectory(prefix="sojourn-") as folder:
        log = Path(folder) / "spark.log"
        session = new_session(app.name, jars=resolve_jars(), slots=1, log=log)
        try:
            builder = QueryBuilder(
                layout=layout,
                settings=SparkSettings(),
                cluster=Cluster(_NOWHERE),
                state=Checkpoints(Path(folder)),
                session=session,
                hosts=layout.addresses(Path(folder)),
                marks={},
                partitions=dict.fromkeys(layout.topics, 1),
            )
            spark: Any = session.sparkContext._jvm  # noqa: SLF001
            told = spark.PythonSQLUtils.explainString
            plans = {
                name: told(builder.frame(name, {})()._jdf.queryExecution(), "simple")  # noqa: SLF001
                for name in layout.queries
            }
        finally:
            end_session(session)
    return {name: _PADDING.sub("0x00…", plan).strip() for name, plan in plans.items()}
