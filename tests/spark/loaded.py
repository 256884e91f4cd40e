"""Applications to whose topics a topology's arrivals come, and engines that work on them."""

import json
from dataclasses import dataclass
from pathlib import Path

from sojourn.app.application import App
from sojourn.app.loading import load
from sojourn.app.waiting_app import entrances
from sojourn.spark.driver.kafka.cluster import Cluster
from sojourn.spark.driver.load.offered_load import Load, Source
from sojourn.spark.driver.load.producer import LoadProcess
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.driver.spark_engine import SparkEngine

LONG_S = 3600.0


@dataclass(frozen=True)
class Loaded:
    """An application that waits as its topology says, and where its arrivals come."""

    app: App
    address: str
    servers: str

    def engine(self, **settings):
        """Return an engine that begins with what comes from now on."""
        told = {"servers": self.servers, "starting": "latest", "batch_s": 5.0} | settings
        return SparkEngine(self.app, self.address, SparkSettings(**told))


def as_file(topology, folder: Path) -> str:
    """Return where *topology* is written as a file."""
    told = {
        "format": 1,
        "name": topology.name,
        "arrivals": {a.name: {"per_s": a.per_s, "into": a.into} for a in topology.arrivals},
        "operators": {
            o.name: {
                "service_s": o.service_s,
                "service_scv": o.service_scv,
                "emits": dict(o.emits),
            }
            for o in topology.operators
        },
    }
    path = folder / f"{topology.name}.json"
    path.write_text(json.dumps(told))
    return str(path)


def quiet(topology, servers, folder: Path) -> Loaded:
    """Return the application of a topology, to whose topics nothing comes yet."""
    address = as_file(topology, folder)
    app = load(address)
    Cluster(servers).ensure([app.topic(a.name) for a in entrances(topology)], 1)
    return Loaded(app, address, servers)


def load_of(topology, made):
    """Return the load of *topology*, which comes as regularly as can be."""
    sources = [
        Source(
            topic=made.app.topic(a.name),
            points=[(0, a.per_s), (LONG_S, a.per_s)],
            gaps="constant",
        )
        for a in entrances(topology)
    ]
    return LoadProcess(Load(servers=made.servers, sources=sources))
