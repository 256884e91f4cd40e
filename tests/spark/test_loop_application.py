"""A split, a join, a loop and a broadcast on Spark: the benchmark's application, in short."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

pytestmark = pytest.mark.spark

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
ROOTS = 100
LARGE = {7: Random(7).randbytes(500_000), 70: Random(70).randbytes(500_000)}


@pytest.fixture(scope="module")
def benchmark(jars):  # noqa: ARG001 - skips where there is no Java
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        patch.setenv("PYTHONPATH", str(BENCHMARKS))
        import spark_loop  # noqa: PLC0415 - found only now

        yield spark_loop


@pytest.fixture(scope="module")
def run(benchmark):
    """Let some roots through, two of which are large."""
    return benchmark.ran(ROOTS, per_s=50.0, photos=LARGE, settings={"batch_s": 5.0})


def test_every_tree_is_followed_to_its_end(run):
    assert run.entered == run.completed == ROOTS
    assert (run.open, run.forgotten) == (0, 0)
    assert run.restarts == {}


def test_as_many_records_reach_each_operator_as_the_content_says(benchmark, run):
    reached, _ = benchmark.expected(ROOTS)
    assert {name: run.arrived(name) for name in reached} == reached
    assert {name: run.served(name) for name in reached} == reached


def test_rates_are_those_of_the_traffic_equations(benchmark, run):
    """With the numbers sent that were measured exactly, with those designed but for chance."""
    for row in benchmark.compared(run, run.pulls, run.load_s):
        for counted in (row["offsets_per_s"], row["hosts_per_s"]):
            assert counted == pytest.approx(row["by_measured_per_s"])
            assert counted == pytest.approx(row["by_design_per_s"], rel=0.05)


def test_at_the_sinks_nothing_is_missing_and_nothing_comes_twice(benchmark, run):
    _, depths = benchmark.expected(ROOTS)
    assert benchmark.depths_of(run) == depths
    for leaves in (run.done, run.audited):
        assert len({leaf.identity for leaf in leaves}) == len(leaves)


def test_every_processor_gets_what_is_read_by_broadcast(benchmark, run):
    seen = Counter(leaf.content["number"] for leaf in run.audited)
    assert seen == dict.fromkeys(range(ROOTS), benchmark.ALLOCATION["audit"])


def test_a_binary_column_of_half_a_megabyte_is_the_same_at_the_end(run):
    photos = [(leaf.content["number"], leaf.photo) for leaf in run.done]
    assert {number for number, photo in photos if photo is not None} == LARGE.keys()
    assert all(photo == LARGE.get(number) for number, photo in photos)
