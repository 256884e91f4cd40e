"""Traffic monitoring on Spark, against a batch query of Spark over the same reports.

    python benchmarks/spark_traffic.py [--rate 200] [--for 30] [--short]

Reports are sent at so many per second and processed as they come, with one processor of each
operator. What was sent is then written to a Parquet file, and Spark gives the rows of all cells
and windows by SQL (`sojourn_papers.apps.traffic.query`): they must equal the last rows at
the sink, and those worked out offline. Printed are also service times, what operators send, the
mean latency of a report, and how large the states are.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import app_run
from blocks import latency, observation_of
from sojourn.measure.observed import observed
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.check import read_stream
from sojourn_papers.apps.traffic.batch import batch_rows, write_reports
from sojourn_papers.apps.traffic.settings import Settings


def ran(made, per_s, lasts_s):
    """Return the topology, what was observed, what was sent, and the results at each sink."""
    app = made.app
    with app_run.ran(made, {"positions": per_s}, lasts_s) as (engine, topology, pulls):

        def records(stream, topic=None):
            read = read_stream(engine.clients, app, stream, topic=topic)
            return [each.record for each in read]

        sinks = {name: records(name, app.topic(name)) for name in app.sinks}
        return topology, pulls, records("positions"), sinks


def main():
    """Run, print, and fail if rows differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=200.0, help="reports per second")
    parser.add_argument("--for", type=float, default=30.0, dest="lasts_s", metavar="SECONDS")
    parser.add_argument("--short", action="store_true", help="10 s, to see that it runs")
    asked = parser.parse_args()
    lasts_s = 10.0 if asked.short else asked.lasts_s
    made, settings = entry("traffic"), Settings.of_environment()
    sys.stderr.write(f"{asked.rate:g} reports per second for {lasts_s:g} s, on Spark\n")
    topology, pulls, sent, sinks = ran(made, asked.rate, lasts_s)
    told, offline = made.told(sinks), made.rows(("positions", report) for report in sent)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "positions.parquet"
        write_reports(path, sent)
        rows = batch_rows(path, settings)
    hours = (sent[-1][1] - sent[0][1]) / 3600
    print(f"{len(sent)} reports of {hours:.1f} hours, {settings}")
    print(
        f"{len(sinks['rows'])} rows at the sink, the last of {len(told['rows'])} cells and "
        f"windows; {len(sinks['late'])} late reports; ends of queues: "
        f"{sum(row[-1] for row in told['rows'])}"
    )
    same = {"batch query": told["rows"] == rows, "offline": told == offline}
    for name, is_same in same.items():
        print(f"{name:<12} {'the same rows' if is_same else 'other rows'}")
    for operator in observed(topology, observation_of(pulls, topology)).operators:
        sends = ", ".join(f"{n:.2f} to {to}" for to, n in operator.emits.items())
        print(f"  {operator.name:<8}{1e3 * operator.service_s:8.3f} ms  {sends}")
    print(f"a report took {1e3 * latency(pulls).value:.1f} ms on average")
    panes = [len(kept["panes"]) for kept in made.states(_sourced(sent))["cells"].values()]
    most = settings.slides + settings.late_slides
    print(f"{len(panes)} cells have states, of up to {max(panes)} panes; {most} may be")
    return int(not all(same.values()))


def _sourced(sent):
    return (("positions", report) for report in sent)


if __name__ == "__main__":
    sys.exit(main())
