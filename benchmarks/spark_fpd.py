"""Frequent pattern detection on Spark: what goes round its loop, against the traffic equations.

    python benchmarks/spark_fpd.py [--rate 20] [--for 60] [--short]

So many tweets enter and leave per second, half of them each. Printed are, for each operator,
the records per second that reach it, and what the traffic equations give: with what operators
send by the hints of the application, and with what they send if its functions get the same
tweets one after the other, without Spark. Then the gain of the loop, the means of latency and
service times, and whether what the sink tells is what is worked out offline.
"""

import argparse
import os
import sys
from collections import Counter, deque
from itertools import zip_longest

import app_run
from blocks import latency, observation_of
from sojourn.measure.observed import observed
from sojourn.topology.traffic import rates
from sojourn_papers.apps.catalogue import entry
from sojourn_papers.apps.check import comparison, read_stream
from sojourn_papers.apps.fpd.settings import Settings

SOURCES = ("entering", "leaving")


def one_after_the_other(app, sent):
    """Return how many records each stream gets if tweets pass alone, in turn."""
    settings, counted = Settings.of_environment(), Counter()
    operators = {"entering": "generate", "leaving": "generate", "changes": "report"}
    states = {"detect": {}, "report": {}}
    for records in zip_longest(*(sent[source] for source in SOURCES)):
        open_ = deque((s, r) for s, r in zip(SOURCES, records, strict=True) if r is not None)
        while open_:
            stream, record = open_.popleft()
            counted[stream] += 1
            name = operators.get(stream, "detect")
            function = app.operators[name].function
            if name == "generate":
                open_ += function(settings, stream, record)
                continue
            fields = app.operators[name].state
            state = states[name].setdefault(record[0], dict(fields.defaults))
            if name == "detect":
                open_ += function(settings, state, stream, record)
            else:
                counted["report"] += len(list(function(state, *record)))
    return counted


def gains_of(counted):
    """Return what operators send to each other for each record, by these numbers."""
    detected = counted["candidates"] + counted["notices"]
    tweets = counted["entering"] + counted["leaving"]
    return {
        "generate": {"detect": counted["candidates"] / tweets},
        "detect": {
            "detect": counted["notices"] / detected,
            "report": counted["changes"] / detected,
        },
        "report": {},
    }


def ran(made, per_s, lasts_s):
    """Return what was observed until everything had passed, the tweets, and the verdict."""
    compare = comparison(made, "")
    each = dict.fromkeys(SOURCES, per_s / len(SOURCES))
    with app_run.ran(made, each, lasts_s) as (engine, topology, pulls):
        sent = {
            source: [read.record for read in read_stream(engine.clients, made.app, source)]
            for source in SOURCES
        }
        return topology, pulls, sent, compare(engine.clients)


def arrived(pulls, name):
    """Return the records that reached an operator."""
    return sum(sum(o.arrivals) for pull in pulls for o in pull.operators if o.name == name)


def main():
    """Run, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=float, default=20.0, help="tweets per second")
    parser.add_argument("--for", type=float, default=60.0, dest="lasts_s", metavar="SECONDS")
    parser.add_argument("--short", action="store_true", help="15 s, to see that it runs")
    asked = parser.parse_args()
    lasts_s = 15.0 if asked.short else asked.lasts_s
    made = entry("fpd")
    sys.stderr.write(f"{asked.rate:g} tweets per second for {lasts_s:g} s, on Spark\n")
    topology, pulls, sent, verdict = ran(made, asked.rate, lasts_s)
    counted = one_after_the_other(made.app, sent)
    tweets = counted["entering"] + counted["leaving"]
    per_s = {"generate": tweets / lasts_s}
    by_hints, by_functions = (
        rates(per_s, gains) for gains in (topology.gains, gains_of(counted))
    )
    print(f"{tweets} tweets, {Settings.of_environment()}; records per second:")
    print(f"{'operator':<12}{'measured':>10}{'equations, functions':>24}{'hints':>24}")
    for name in topology.operator:
        here = arrived(pulls, name) / lasts_s
        line = f"{name:<12}{here:10.2f}"
        for told in (by_functions, by_hints):
            line += f"{told[name]:15.2f} ({here / told[name] - 1:+6.1%})"
        print(line)
    # how many candidates there are does not depend on the order of tweets
    detected = arrived(pulls, "detect")
    notices = detected - counted["candidates"]
    gain = gains_of(counted)["detect"]["detect"]
    print(
        f"sent back per record detected: {notices / detected:.4f} on Spark ({notices} of "
        f"{detected}), {gain:.4f} one after the other"
    )
    seen = observed(topology, observation_of(pulls, topology))
    for operator in seen.operators:
        print(f"  {operator.name:<12}{1e3 * operator.service_s:8.3f} ms")
    took_s = latency(pulls).value
    print(f"a tweet took {1e3 * took_s:.1f} ms in sum over its records; {os.cpu_count()} cores")
    print(verdict)
    return int(not verdict.exact)


if __name__ == "__main__":
    sys.exit(main())
