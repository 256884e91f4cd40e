"""Kills of random processes at random times; the results must match the input.

    python benchmarks/spark_kills.py [--app nested] [--seed 1] [--kills 16] [--rescales 0]
                                     [--within 240] [--per-s 8] [--records N] [--nodes 0]
                                     [--short]

Applications, with `--app`:

- nested: three operators with keys and two nested loops; one record in a hundred takes longer
  than a batch of 5 s.
- two-parts: six operators in two parts, with a split, a join, fan-out, three loops, keys and a
  projection.
- state: a loop through an operator with a state for each key, which is compared, too.
- zipf: the same with 10,000 keys and short service times, for high rates.
- writers: two parts write one stream, and a state is downstream of a projection and a part.

The seed determines when a processor, a template, a host, a Python worker or the daemon of
Spark, Java, the driver or the broker is killed (`kill -9`), and when operators are rescaled.
With `--nodes 3` the application runs on a trial cluster with three workers. Then a worker can
be killed with all its processes, and is replaced; or an executor, an agent, a processor or a
Python worker on it.

Roots are sent throughout. No result may be missing or wrong. A deduplicated sink must have each
result exactly once. A plain sink may have duplicates: at most the results of one batch for each
kill after which a query repeats its batch.
"""

import argparse
import json
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from sojourn_trial.applications import (
    kill_points_app,
    nested_app,
    state_app,
    two_parts_app,
    writers_app,
    zipf_app,
)
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.kills.ledger import compare
from sojourn_trial.kills.schedule import ON_NODES, REPEATING, TARGETS, Rescale, drawn, rescales
from sojourn_trial.kills.trial import Trial, say

APPS = {
    "nested": nested_app,
    "two-parts": two_parts_app,
    "state": state_app,
    "zipf": zipf_app,
    "points": kill_points_app,
    "writers": writers_app,
}
ALLOCATION = nested_app.ALLOCATION
PER_S = 8.0
# These kills hit all queries; others hit one.
_OF_ALL = ("daemon", "jvm", "driver", "node")


def trial_in(folder, *, app="nested", jars=None, cluster=None):
    """Return an application with its broker in *folder*, on *cluster* if there is one."""
    module = APPS[app]
    # native operators have no processors to scale: they count as one
    allocation = dict.fromkeys(module.app.operators, 1) | module.ALLOCATION
    return Trial(
        folder, f"{module.__name__}:app", allocation=allocation, jars=jars, cluster=cluster
    )


def sending(trial, roots, per_s=PER_S):
    """Return the thread that sends *roots* roots at the rate *per_s*."""
    payloads = [
        json.dumps({"number": number, "key": APPS[trial.app.name].key_of(number)})
        for number in range(roots)
    ]
    return trial.sending("roots", payloads, per_s)


def kill(trial, changes):
    """Kill and rescale on schedule; a long recovery delays the later changes."""
    began_s = time.monotonic()
    for each in sorted(changes, key=lambda change: change.at_s):
        time.sleep(max(0.0, began_s + each.at_s - time.monotonic()))
        now_s = time.monotonic() - began_s
        if isinstance(each, Rescale):
            say(f"{now_s:.0f} s: processors are {trial.driver.scale(**each.allocation)}")
        else:
            say(f"{now_s:.0f} s: {each.target} is killed")
            trial.kill(each.target, each.pick)


def settled(trial):
    """Return the outcomes once nothing is missing, or after a timeout."""
    due = APPS[trial.app.name].expected([_row(payload) for payload in trial.written("roots")])
    trial.settle(
        lambda: (
            # the cheap check first
            all(trial.length(name) >= len(rows) for name, rows in due.items())
            and not any(outcome.lost for outcome in outcomes(trial).values())
            and not wrong_states(trial)
        )
    )
    return outcomes(trial)


def outcomes(trial):
    """Compare each sink with the results expected of the input."""
    due = APPS[trial.app.name].expected([_row(payload) for payload in trial.written("roots")])
    return {
        name: compare(
            rows,
            map(_row, trial.written(name)),
            key=(lambda row: row[1]) if name.startswith("stamped") else None,
        )
        for name, rows in due.items()
    }


def wrong_states(trial):
    """Return actual and expected state, by operator and key, where they differ."""
    due = getattr(APPS[trial.app.name], "expected_states", lambda _: {})
    wrong = {}
    for operator, states in due([_row(payload) for payload in trial.written("roots")]).items():
        found = trial.states(operator)
        keys = found.keys() | states.keys()
        wrong |= {
            (operator, key): (found.get(key), states.get(key))
            for key in keys
            if found.get(key) != states.get(key)
        }
    return wrong


def _row(payload):
    return tuple(json.loads(payload).values())


def broken(found):
    """Return the sinks that violate their guarantee."""
    return [
        name
        for name, outcome in found.items()
        if outcome.lost or outcome.wrong or (name.endswith("-once") and not outcome.exact)
    ]


def most_twice(trial):
    """Return the number of duplicates that the kills may have caused, by plain sink.

    After a kill, queries upstream of the sink repeat their batch: the results between two
    commits. If a kill hits one query only, the query with the largest batch counts.
    """
    killed = [(at_s, target) for at_s, target in trial.killed if target in REPEATING]
    times_s = [at_s for at_s, _ in killed]
    hits = [sum if target in _OF_ALL else max for _, target in killed]
    most = {}
    for name, sink in trial.app.sinks.items():
        if not sink.deduplicate:
            queries = trial.queries_before(sink.stream.name)
            batches = [trial.in_batches(name, query, times_s) for query in queries]
            by_kill = zip(*batches, strict=True)  # for each kill, the batch of each query
            most[name] = sum(hit(sizes) for hit, sizes in zip(hits, by_kill, strict=True))
    return most


def _begun(stack, app, nodes):
    """Return an application to start, on a trial cluster if there are *nodes*."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kills-")))
    if not nodes:
        return trial_in(folder, app=app)
    cluster = TrialCluster(nodes, cores=6, folder=folder / "cluster", plain=True)
    return trial_in(folder, app=app, cluster=stack.enter_context(cluster))


def main():
    """Run, print, and return 1 if a sink or a state violates its guarantee."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--app", choices=APPS, default="nested")
    parser.add_argument("--kills", type=int, default=16)
    parser.add_argument("--rescales", type=int, default=0)
    parser.add_argument("--within", type=float, default=240.0, help="seconds")
    parser.add_argument("--per-s", type=float, default=PER_S, help="roots that are sent")
    parser.add_argument("--records", type=int, help="roots; instead of --within")
    parser.add_argument(
        "--target",
        action="append",
        choices=dict.fromkeys((*TARGETS, *ON_NODES)),
        help="only these",
    )
    parser.add_argument("--nodes", type=int, default=0, help="workers of a trial cluster")
    parser.add_argument("--short", action="store_true", help="four kills, to see that it runs")
    asked = parser.parse_args()
    if asked.short:
        asked.kills, asked.within = 4, 30.0
    if asked.records is not None:
        asked.within = asked.records / asked.per_s
    kills = drawn(
        asked.seed,
        kills=asked.kills,
        within_s=asked.within,
        targets=asked.target or (ON_NODES if asked.nodes else TARGETS),
    )
    changes = rescales(
        asked.seed,
        APPS[asked.app].ALLOCATION,
        number=asked.rescales,
        within_s=asked.within,
    )
    with ExitStack() as stack:
        trial = stack.enter_context(_begun(stack, asked.app, asked.nodes))
        began_s = time.monotonic()
        load = sending(trial, round(asked.per_s * asked.within), asked.per_s)
        kill(trial, [*kills, *changes])
        load.join()
        say(f"{time.monotonic() - began_s:.0f} s: all is sent")
        found, failure = settled(trial), trial.driver.health()["failure"]
        say(f"{time.monotonic() - began_s:.0f} s: settled")
        most, wrong = most_twice(trial), wrong_states(trial)
    too_many = [name for name, number in most.items() if found[name].twice.total() > number]
    for name, outcome in found.items():
        allowed = f"; at most {most[name]} twice" if name in most else ""
        print(f"{name:12} {outcome}{allowed}")
    for (operator, key), (has, due) in wrong.items():
        print(f"{operator} has {has} for {key}, and should have {due}")
    for thing in trial.left:
        print(f"left behind: {thing}")
    if failure:
        print(f"the application stopped: {failure}")
    return int(bool(broken(found) or wrong or too_many or trial.left or failure))
