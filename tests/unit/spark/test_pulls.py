"""What hosts and brokers counted, as the loop sees it."""

import time

import pytest

import sojourn as sj
from sojourn.errors import BadInput
from sojourn.host.counting import Counts, State, Tally
from sojourn.host.tracing import Trace
from sojourn.spark.layout import Layout
from sojourn.spark.machine import Machine
from sojourn.spark.offsets import Offsets
from sojourn.spark.pulls import Pulls
from sojourn.spark.settings import SparkSettings

app = sj.App("shop")
lines = app.source("lines", schema="line string", topic="all-lines")


@app.operator(reads=lines, emits="word string")
def split(line):
    """Pass it on."""
    yield (line,)


app.project("upper", reads=split, columns={"word": "upper(word)"})
app.sink(split)


class Scripted(Offsets):
    """Offsets that are told instead of asked for."""

    def __init__(self, samples):
        super().__init__(None, {})
        self._told = [
            (at_s, {topic: {0: total} for topic, total in totals.items()})
            for at_s, totals in samples
        ]
        for at_s, totals in samples:
            self._samples.append((at_s, totals))

    def look(self):
        return self._told[-1][1]


def topics(lines, split, upper):
    return {
        "all-lines": lines,
        "shop.split": split,
        "shop.upper": upper,
        "shop.dead-letters": 0,
    }


SAMPLES = [(0.0, topics(100, 50, 50)), (1.0, topics(110, 60, 55)), (2.0, topics(130, 80, 70))]


def pulls():
    return Pulls(
        Layout(app, "shop:app"),
        Scripted(SAMPLES),
        {"split": {"all-lines": {0: 95}}, "upper": {"shop.split": {0: 45}}},
        {"upper": {"shop.upper": {0: 40}}},
        0.0,
    )


def tally(**fields):
    told = {
        "since_s": 0.0,
        "at_s": 2.0,
        "state": State(wanted=2, running=2, waiting=3, dead=1),
        "processors": [Counts("split-1", 5, 0.5, 0.06, 1.0, 0.3, 0.02, 1 << 20)],
        "positions": {"lines": {0: 125}},
        "bytes": {"lines": 100, "split": 60},
        "transfers": (4, 0.02),
        "traces": [
            Trace("all-lines/0/100", "all-lines/0/100", 0.5, 1.5, 0.9, 3, [("split", "x")])
        ],
    }
    return Tally(**(told | fields))


def taken(made, tallies, clock_s=(0.0, 2.0)):
    return made.taken(
        tallies,
        made.offsets.look(),
        wanted={"split": 2, "upper": 1},
        running={"split": 2},
        clock_s=clock_s,
        until_s=2.0,
    )


def test_arrivals_come_from_offsets_and_the_rest_from_hosts():
    pull = taken(pulls(), {"split": [tally()]})
    split, upper = pull.operators
    assert (sum(split.arrivals), sum(upper.arrivals)) == (30, 30)
    assert len(split.arrivals) * split.bin_s == pytest.approx(2.0)
    # five in the topic behind what was taken, and three in hand
    assert split.backlog == (130 - 125) + 3
    assert (split.transfers, split.transfer_s) == (4, 0.02)
    assert split.bytes == {"lines": 100, "split": 60}
    (processor,) = split.processors
    assert (processor.served, processor.cpu_s, processor.memory_bytes) == (5, 0.02, 1 << 20)
    assert pull.roots.entered == 30
    assert pull.roots.streams == {"lines": 30}


def test_sparks_own_operators_are_measured_by_what_they_write():
    _, upper = taken(pulls(), {}).operators
    assert sum(p.served for p in upper.processors) == 20
    assert upper.backlog == (80 - 45) - (70 - 40)


def test_a_tree_ends_at_sparks_own_operators():
    pull = taken(pulls(), {"split": [tally()]})
    assert pull.roots.completed == 3
    assert pull.roots.completions.mean_s == pytest.approx(1.0, rel=0.01)
    assert pull.roots.sums.mean_s == pytest.approx(0.9, rel=0.01)


def test_reports_that_were_late_are_added_up():
    (split, _) = taken(pulls(), {"split": [tally(), tally()]}).operators
    assert [p.served for p in split.processors] == [10]
    assert split.bytes["lines"] == 200


def test_a_host_that_did_not_report_leaves_what_was_known():
    made = pulls()
    taken(made, {"split": [tally()]})
    (split, _) = taken(made, {}).operators
    assert split.backlog == 8
    assert split.processors == ()


def test_who_waited_in_a_topic_does_not_tell_how_long_the_way_is():
    """A processor that was just added is idle, and gets a record that has waited for long."""
    made = pulls()
    behind = tally(positions={"lines": {0: 100}}, transfers=(4, 12.0))
    (split, _) = taken(made, {"split": [behind]}).operators
    assert (split.backlog, split.transfers, split.transfer_s) == (33, 0, 0.0)
    # it was worked off since, and some of those that were given at once had waited
    after = [tally(positions={"lines": {0: 129}})]
    (split, _) = taken(made, {"split": after}).operators
    assert (split.backlog, split.transfers) == (4, 0)
    (split, _) = taken(made, {"split": after}).operators
    assert (split.transfers, split.transfer_s) == (4, 0.02)


@pytest.mark.parametrize(
    ("clock_s", "warming"),
    [((0, 2), True), ((9, 10), True), ((10, 11), False), ((0, 30), False)],
)
def test_the_first_seconds_are_those_of_a_start(clock_s, warming):
    assert taken(pulls(), {}, clock_s).warming is warming


def test_a_batch_that_began_ended_another():
    made = pulls()
    begun = [tally(state=State(wanted=2, running=2, batches=n)) for n in (1, 1, 3, 1)]
    ended = [taken(made, {"split": [each]}).commits for each in begun]
    assert ended == [0, 0, 2, 0]  # the last host was started anew


def test_the_hottest_key_and_what_is_missing_are_passed_on():
    state = State(wanted=4, running=2, missing="out of memory")
    (split, upper) = taken(pulls(), {"split": [tally(state=state, hottest=0.3)]}).operators
    assert (split.hottest, split.missing) == (0.3, "out of memory")
    assert (upper.hottest, upper.missing) == (0.0, "")


def test_a_machine_is_never_busier_than_it_has_cores():
    machine = Machine()
    assert machine.busy_cores(time.monotonic() - 60) is None
    until_s = time.monotonic() + 0.05
    while time.monotonic() < until_s:
        pass
    busy = machine.busy_cores(time.monotonic())
    assert 0 <= busy <= machine.cores


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"batch_s": 3}, r"batches of 3 s; Spark takes 5 s or more"),
        ({"batch_s": float("nan")}, "batches of nan s"),
        ({"starting": "yesterday"}, "'yesterday' is no place to start"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, why):
    with pytest.raises(BadInput, match=why):
        SparkSettings(**settings)


def test_secrets_are_not_shown():
    assert "secret" not in repr(SparkSettings(kafka={"sasl.password": "secret"}))
