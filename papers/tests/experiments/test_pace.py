"""Experiments where time passes: which, how fast, for how long, and what is said of it."""

from dataclasses import replace

import pytest

from sojourn.errors import BadInput
from sojourn_papers.experiments import experiment
from sojourn_papers.experiments.bench import Bench
from sojourn_papers.experiments.on_simulator import alike, simulated
from sojourn_papers.experiments.pace import LEAST_LOOK_S, WITHIN_S, Pace
from sojourn_papers.experiments.runner import page, reproduce
from sojourn_papers.experiments.span import reallocating

EVERY = reallocating()


@pytest.mark.parametrize("name", EVERY)
def test_every_experiment_on_re_allocation_fits_into_some_minutes(name):
    pace = Pace.of(EVERY[name].spans)
    assert 0.7 * WITHIN_S < pace.wall_s <= WITHIN_S
    for leg in pace.legs:
        assert leg.look_s >= 0.9 * LEAST_LOOK_S
        assert 200 < leg.faster * leg.span.records_per_s <= 240
        assert leg.minute_s <= 60


def test_as_fast_and_for_as_long_as_asked_for():
    spans = EVERY["drs15-fig9"].spans
    pace = Pace.of(spans, faster=2.0, within_s=900)
    assert pace.faster == {"vld": 2.0, "fpd": 2.0}
    assert 0.8 * 900 < pace.wall_s <= 900


def test_a_minute_is_never_longer_than_a_minute():
    pace = Pace.of(EVERY["drs15-fig10"].spans, faster=6.0, within_s=7200)
    assert pace.minutes_s == {"vld": 60.0}


def test_too_little_time_is_refused_with_what_it_takes():
    with pytest.raises(BadInput, match=r"162 looks do not fit into 60 s; write --within 4m"):
        Pace.of(EVERY["drs15-fig9"].spans, within_s=60)
    with pytest.raises(BadInput, match=r"VLD 500 times as fast.* write --faster 120 or less"):
        Pace.of(EVERY["drs15-fig10"].spans, faster=500, within_s=7200)


def test_it_is_said_how_fast_and_what_is_not_as_in_the_papers():
    pace = Pace.of(EVERY["drs15-fig9"].spans)
    assert pace.said == "VLD 6.1 times as fast, FPD 5.8 times as slow"
    assert "roots, and" in pace.caveat
    assert "Changes do not pause operators for 1 s" in pace.caveat
    assert "dealt" not in pace.caveat
    bursts = Pace.of(EVERY["drs17-fig9a"].spans).caveat
    assert "extract and match have one queue" in bursts
    assert "one day instead of 20" in bursts
    assert "instead of 33 ms" in bursts
    machines = Pace.of(EVERY["drs15-fig10"].spans).caveat
    assert "gamma" in machines
    assert "a worker of Spark, started when one is added" in machines
    assert "worker" not in bursts


def test_tables_pictures_and_page_say_what_it_was_run_on(tmp_path):
    pace = Pace.of(experiment("drs15-fig10").spans)
    drawn = []
    bench = Bench(
        engine=simulated,
        minutes_s=pace.minutes_s,
        on=f"on Spark, {pace.said}",
        caveat=pace.caveat,
        beside=alike(pace.faster),
    )
    (done,) = reproduce(
        ["drs15-fig10"], bench, tmp_path, lambda panels, _path: drawn.extend(panels)
    )
    first, *rows = done.csv.read_text(encoding="utf-8").splitlines()
    assert first.endswith(",on")
    said = "on Spark, VLD 2 times as fast on a trial cluster of up to 5 nodes"
    assert all(row.endswith(f'"{said}"') for row in rows)
    assert drawn[0].title == f"VLD\n{said}"
    written = page([done], 1, "Spark")
    assert "papers, on Spark" in written
    assert "Times are measured" in written
    assert pace.caveat in written
    assert all(
        "(simulated under the same conditions, it " in v.numbers for v in done.outcome.verdicts
    )


def shorter(name, days, **schedule):
    described = experiment(name)
    return replace(described, days=days, schedule=replace(described.schedule, **schedule))


def test_days_are_cut_but_not_more_than_there_are():
    described = shorter("drs17-fig9b", 2, minutes=2)
    for days, runs in ((1, 2), (None, 4), (9, 4)):
        outcome = described.run(Bench(engine=simulated, days=days))
        assert len({row[0] for row in outcome.table.rows}) == runs


def test_the_simulator_can_be_without_what_spark_lacks():
    """Dealt out in turn, records wait; on Spark there is one queue, and nothing pauses."""
    described = shorter("drs17-fig9b", 1, minutes=3, changes=((0, 12),))
    dealt, shared = (
        [row[-1] for row in described.run(Bench(engine=engine)).table.rows]
        for engine in (simulated, alike({"vld": 2.0}))
    )
    assert min(dealt) > max(shared)
