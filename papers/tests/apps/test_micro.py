from collections import Counter
from fractions import Fraction
from itertools import islice

import pytest

from apps.in_memory import InMemory, expected
from sojourn.app.loading import check_loadable
from sojourn.errors import BadInput
from sojourn.testing import run
from sojourn_papers.apps.catalogue import CATALOGUE
from sojourn_papers.apps.micro import SHAPES, topology_app
from sojourn_papers.apps.micro.shapes import samples

# as in the paper's table
SELECTIVITIES = [1, 1.333, 1.666, 2]


@pytest.mark.parametrize("shape", SHAPES)
def test_results_are_those_worked_out_offline(shape):
    entry = CATALOGUE[f"micro-{shape}"]
    sent = {source: list(islice(made(1), 20)) for source, made in entry.app.samples.items()}
    due = Counter()
    for source, records in sent.items():
        for record in records:
            due += expected(entry.answers, source, record)
    found = run(entry.app, sent)
    assert due == Counter((sink, made) for sink, results in found.items() for made in results)


@pytest.mark.parametrize("shape", SHAPES)
def test_entries_lead_to_the_applications(shape):
    entry = CATALOGUE[f"micro-{shape}"]
    assert entry.address == f"sojourn_papers.apps.micro:{shape}"
    assert entry.app.name == entry.name
    check_loadable(entry.app)


@pytest.mark.parametrize("s_s", SELECTIVITIES)
def test_a_line_yields_what_the_selectivity_says(s_s):
    """Three operators multiply, and records stay numbered without gaps."""
    running = InMemory(topology_app("linear", c_s=0, s_s=s_s))
    for number, payload in islice(samples(1), 50):
        first, end = number, number + 1
        for _ in range(3):
            first, end = (int(each * Fraction(str(s_s))) for each in (first, end))
        results = running.results("records", (number, payload))
        assert sorted(results) == [("op4", (each, payload)) for each in range(first, end)]


@pytest.mark.parametrize("s_s", SELECTIVITIES)
def test_rates_of_a_plan_have_the_selectivity(s_s):
    rates = topology_app("star", s_s=s_s).topology({"left": 10, "right": 20}).rates
    assert rates == pytest.approx(
        {"op1": 10, "op2": 20, "op3": 30 * s_s, "op4": 30 * s_s**2, "op5": 30 * s_s**2}
    )


def test_load_is_counted_in_hundreds_of_random_numbers(monkeypatch):
    drawn = []
    monkeypatch.setattr("sojourn_papers.apps.micro.shapes.random", lambda: drawn.append(1))
    list(topology_app("linear", c_s=30).operators["op1"]("records", (0, "")))
    assert len(drawn) == 3000


def test_tasks_are_processors_and_left_to_the_loop_unless_given():
    fixed, free = topology_app("linear", t_s=8), topology_app("linear")
    bounds = {(each.min_processors, each.max_processors) for each in fixed.operators.values()}
    assert bounds == {(8, 8)}
    assert free.operators["op1"].max_processors is None


@pytest.mark.parametrize(
    ("shape", "given"), [("ring", {}), ("star", {"c_s": -1}), ("star", {"s_s": 0})]
)
def test_what_cannot_be_is_refused(shape, given):
    with pytest.raises(BadInput, match="write"):
        topology_app(shape, **given)
