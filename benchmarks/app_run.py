"""An application of `sojourn_papers.apps` on Spark, until all that was sent to it is done."""

from contextlib import contextmanager

from sojourn.decide.plan import Plan
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine

_PATIENCE_S = 120.0


@contextmanager
def ran(made, per_s, lasts_s):
    """Yield the engine when all is done, the topology, and what was observed.

    So many samples *per_s* are sent to each source, and there is one processor of each
    operator.
    """
    app, topology = made.app, made.app.topology(per_s)
    load = {
        source: ((0.0, each), (lasts_s, each), (lasts_s, 0.0)) for source, each in per_s.items()
    }
    settings = SparkSettings(batch_s=10.0, trace_per_s=1e6, load=load)
    with SparkEngine(app, made.address, settings) as engine:
        engine.start(topology, Plan.here(dict.fromkeys(app.operators, 1)))
        pulls = []
        while engine.now_s < lasts_s + _PATIENCE_S:
            pulls.append(engine.observe(engine.now_s + 1.0))
            done = sum(pull.roots.completed for pull in pulls)
            entered = sum(pull.roots.entered for pull in pulls)
            if engine.now_s > lasts_s + 1.0 and done == entered:
                break
        engine.drain()
        yield engine, topology, pulls
