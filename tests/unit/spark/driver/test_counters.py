"""What hosts and brokers counted, as the loop sees it."""

import pytest

import sojourn as sj
from sojourn.errors import BadInput
from sojourn.measure.counters import ProcessorReport, sooner
from sojourn.spark.driver.counters import Pulls
from sojourn.spark.driver.kafka.offsets import Offsets
from sojourn.spark.driver.layout import Layout
from sojourn.spark.driver.settings import SparkSettings
from sojourn.spark.wire.counters import (
    OperatorState,
    OperatorTally,
    PartState,
    PartTally,
    Trace,
)

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

    def came(self, at_s, offset):
        self._looks.append((at_s, {"all-lines": {0: offset}}))


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


def tally(position=125, part=None, **fields):
    told = {
        "since_s": 0.0,
        "at_s": 2.0,
        "state": OperatorState(wanted=2, running=2, waiting=3, dead=1),
        "processors": [
            ProcessorReport(
                processor="split-1",
                served=5,
                sampled=5,
                service_s=0.5,
                service_ss=0.06,
                wait_s=1.0,
                wait_ss=0.3,
                cpu_s=0.02,
                memory_bytes=1 << 20,
            )
        ],
        "arrivals": {},
        "bytes": {"lines": 100, "split": 60},
        "transfers": (4, 0.02),
        "traces": [
            Trace("all-lines/0/100", "all-lines/0/100", 0.5, 1.5, 0.9, 3, [("split", "x")])
        ],
    }
    positions = {"all-lines": {0: position}}
    state = PartState(positions=positions, visits={"all-lines": {"split": 1.0}})
    return PartTally(part or state, {"split": OperatorTally(**(told | fields))})


def taken(made, tallies, clock_s=(0.0, 2.0)):
    return made.taken(
        tallies,
        made.offsets.look(),
        wanted={"split": 2, "upper": 1},
        running={"split": 2},
        clock_s=clock_s,
        until_s=2.0,
        wall_s=1002.0,
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


def test_inside_a_part_hosts_count_arrivals_and_what_waits_before_it_counts_for_all():
    inside = sj.App("shop")
    lines = inside.source("lines", schema="line string", topic="all-lines")

    @inside.operator(reads=lines, emits="word string")
    def split(line):
        yield (line,)

    @inside.operator(reads=split)
    def store(word):
        assert word

    offsets = Scripted([(at_s, {**totals, "shop.retries": 0}) for at_s, totals in SAMPLES])
    begun = {"split": {"all-lines": {0: 95}, "shop.retries": {0: 0}}}
    made = Pulls(Layout(inside, "shop:inside"), offsets, begun, {}, 0.0)
    told = tally(
        part=PartState(
            positions={"all-lines": {0: 110}},
            visits={"all-lines": {"split": 1.0, "store": 2.5}},
        )
    )
    stored = OperatorTally(
        0.0, 2.0, OperatorState(waiting=7), [], {2: 5, 9: 6}, {}, (0, 0.0), []
    )
    told.operators["store"] = stored
    both = {"split": 1, "store": 1}
    pull = made.taken(
        {"split": [told]},
        offsets.look(),
        wanted=both,
        running=both,
        clock_s=(0, 2),
        until_s=2.0,
        wall_s=1002.0,
    )
    first, second = pull.operators
    assert (sum(first.arrivals), second.arrivals) == (30, (0, 0, 5, 0, 0, 0, 0, 0, 0, 6))
    assert (first.backlog, second.backlog) == (20 + 3, 50 + 7)


def test_sparks_own_operators_are_measured_by_what_they_write():
    _, upper = taken(pulls(), {}).operators
    assert sum(p.served for p in upper.processors) == 20
    assert upper.backlog == (80 - 45) - (70 - 40)


def test_a_projection_of_a_part_has_done_what_its_part_has_taken_or_written():
    inside = sj.App("shop")
    lines = inside.source("lines", schema="line string", topic="all-lines")
    first = inside.project("first", reads=lines, columns={"line": "line"}, emits="line string")
    split = inside.operator(reads=first, emits="word string", name="split")(split_line)
    inside.sink(inside.project("upper", reads=split, columns={"word": "word"}))
    offsets = Scripted([(at_s, {**totals, "shop.retries": 0}) for at_s, totals in SAMPLES])
    begun = {"split": {"all-lines": {0: 95}, "shop.retries": {0: 0}}}
    made = Pulls(Layout(inside, "shop:inside"), offsets, begun, {}, 0.0)
    each = dict.fromkeys(inside.operators, 1)
    pull = made.taken(
        {"split": [tally(position=125)]},
        offsets.look(),
        wanted=each,
        running=each,
        clock_s=(0, 2),
        until_s=2.0,
        wall_s=1002.0,
    )
    before, split, behind = pull.operators
    assert [sum(o.arrivals) for o in pull.operators] == [30, 30, 20]
    assert [sum(p.served for p in o.processors) for o in (before, behind)] == [125 - 95, 20]
    assert [o.backlog for o in pull.operators] == [0, (130 - 125) + 3, 0]
    # a tree goes through the one before: what is behind it reads the root itself
    assert pull.roots.completed == 3


def split_line(line):
    """Pass it on."""
    yield (line,)


def test_a_tree_ends_at_sparks_own_operators():
    pull = taken(pulls(), {"split": [tally()]})
    assert pull.roots.completed == 3
    assert pull.roots.completions.mean_s == pytest.approx(1.0, rel=0.01)
    assert pull.roots.sums.mean_s == pytest.approx(0.9, rel=0.01)


def test_births_are_on_the_clock_of_the_engine_and_waiting_roots_are_among_them():
    times = taken(pulls(), {"split": [tally()]}).roots.times
    assert times.birth_s.tolist() == [pytest.approx(0.5 - 1000)]
    assert (times.completion_s.tolist(), times.weight.tolist()) == ([1.0], [3.0])
    # 8 of the 15 that arrive in a second wait, and the oldest has for half of one
    assert times.open_weight.tolist() == [1.0] * 8
    assert times.open_birth_s[-1] == pytest.approx(2 - 7.5 / 15)
    assert times.open_birth_s[0] == pytest.approx(2 - 0.5 / 15)


def test_births_of_many_waiting_roots_are_told_together():
    many = tally(state=OperatorState(wanted=2, running=2, waiting=29_995))
    times = taken(pulls(), {"split": [many]}).roots.times
    assert (len(times.open_weight), times.open_weight.sum()) == (1000, 30_000)
    assert times.open_birth_s.min() == 0.0


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
    behind = tally(position=100, transfers=(4, 12.0))
    (split, _) = taken(made, {"split": [behind]}).operators
    assert (split.backlog, split.transfers, split.transfer_s) == (33, 0, 0.0)
    # it was worked off since, and some of those that were given at once had waited
    after = [tally(position=129)]
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
    begun = [tally(part=PartState(batch=n)) for n in (1, 1, 3, -1, 4)]
    ended = [taken(made, {"split": [each]}).commits for each in begun]
    assert ended == [0, 0, 2, 0, 1]  # the last host was started anew


def test_a_batch_that_has_no_next_yet_has_ended_too():
    made = pulls()
    told = [
        tally(part=PartState(relays=n, batch=b)) for n, b in ((2, 2), (1, 2), (2, 4), (2, 4))
    ]
    assert [taken(made, {"split": [each]}).commits for each in told] == [0, 1, 2, 0]


def test_the_hottest_key_and_what_is_missing_are_passed_on():
    state = OperatorState(wanted=4, running=2, missing="out of memory")
    (split, upper) = taken(pulls(), {"split": [tally(state=state, hottest=0.3)]}).operators
    assert (split.hottest, split.missing) == (0.3, "out of memory")
    assert (upper.hottest, upper.missing) == (0.0, "")


def test_how_many_processors_are_at_work_is_passed_on_where_hosts_know():
    """A query of Spark's own has no host that could tell."""
    told = tally(state=OperatorState(wanted=4, running=4, at_work=1))
    (split, upper) = taken(pulls(), {"split": [told]}).operators
    assert (split.at_work, upper.at_work) == (1, None)


def test_records_on_disk_and_a_closed_entry_are_told():
    part = PartState(positions={"all-lines": {0: 125}}, closed_by=("split",))
    some = tally(part=part, state=OperatorState(waiting=9, spilled=4))
    assert taken(pulls(), {"split": [some]}).notes == (
        "split: its queue exceeds its share of memory and is spilled to disk",
        "split reads no more records from Kafka: too many wait for split",
    )


def test_what_records_wait_for_is_told_once_for_an_operator_and_its_part():
    waits = "the schema registry at r does not answer"
    for part, state in ((waits, ""), ("", waits), (waits, waits)):
        some = tally(part=PartState(waits=part), state=OperatorState(waits=state))
        notes = taken(pulls(), {"split": [some]}).notes
        assert notes == (f"split: records wait: {waits}",)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"batch_s": 3}, r"a batch of 3 s is too short; write 5 s or more"),
        ({"batch_s": float("nan")}, "a batch of nan s"),
        ({"patience_s": -1.0}, "a patience of -1.0 s is negative; write 0 or more"),
        (
            {"broker_port": 1, "servers": "k:9"},
            "port 1 is that of .* own broker, but servers are k:9",
        ),
        ({"starting": "yesterday"}, "'yesterday' is not an offset to start at"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, why):
    with pytest.raises(BadInput, match=why):
        SparkSettings(**settings)


def test_secrets_are_not_shown():
    assert "secret" not in repr(SparkSettings(kafka={"sasl.password": "secret"}))


# -- producers' clocks -------------------------------------------------------------------------


def looked(made, number=50, every_s=0.2):
    """Let one record come between each two looks at the source, from offset 100 on."""
    for n in range(number):
        made.offsets.came(1000.0 + every_s * n, 100 + n)
    return made


def traced(offset, behind_s, took_s=0.5):
    """Return what is told of a root that came when its offset says and took so long."""
    root = f"all-lines/0/{offset}"
    came_s = 1000.1 + 0.2 * (offset - 100)
    birth_s = came_s - behind_s
    return Trace(root, root, birth_s, came_s + took_s, max(0.0, took_s + behind_s), 1, [])


@pytest.mark.parametrize(
    ("behind_s", "said"),
    [
        (
            5.0,
            "about 5 s behind, or they send late",
        ),
        (-3.0, "about 3 s ahead"),
        (0.1, None),
    ],
)
def test_births_by_clocks_that_are_off_are_corrected_and_it_is_said(behind_s, said):
    made = looked(pulls())
    first = [traced(n, behind_s) for n in range(100, 130)]
    taken(made, {"split": [tally(traces=first, position=129)]})
    later = tally(
        traces=[traced(n, behind_s) for n in range(130, 140)],
        transfers=(4, 4 * (0.005 + max(0.0, behind_s))),
        position=129,
        processors=[
            ProcessorReport(
                processor="split-1",
                served=10,
                sampled=10,
                service_s=0.5,
                service_ss=0.03,
                wait_s=10 * (0.02 + max(0, behind_s)),
                wait_ss=1e3,
            )
        ],
    )
    pull = taken(made, {"split": [later]})
    expected_s = 0.5 if said else 0.6
    assert pull.roots.completions.mean_s == pytest.approx(expected_s, rel=0.01)
    text = (
        f"clocks of producers of lines are {said}; latency is measured from the append to Kafka"
    )
    assert pull.notes == ((text,) if said else ())
    split = pull.operators[0]
    if said:
        assert split.transfer_s == pytest.approx(4 * 0.005)
        assert split.processors[0].wait_s == pytest.approx(10 * 0.02)
        assert pull.roots.sums.mean_s == pytest.approx(0.5, rel=0.01)


def test_a_root_that_came_before_the_first_look_is_corrected_by_what_others_tell():
    made = looked(pulls())
    taken(made, {"split": [tally(traces=[traced(n, 5.0) for n in range(100, 130)])]})
    pull = taken(made, {"split": [tally(traces=[traced(90, 5.0)])]})
    assert pull.roots.completions.mean_s == pytest.approx(0.5, rel=0.01)


def test_few_records_and_roots_of_others_tell_nothing_of_clocks():
    made = looked(pulls())
    few = [traced(n, 5.0) for n in range(100, 120)]
    other = [Trace("an id", "an id", 990.0, 1000.0, 10.0, 1, [])] * 40
    pull = taken(made, {"split": [tally(traces=[*few, *other])]})
    assert pull.notes == ()
    assert pull.roots.completions.mean_s > 5


def test_what_waits_less_than_nothing_waits_nothing():
    report = ProcessorReport(
        processor="p", served=2, sampled=2, service_s=0.2, service_ss=0.02, wait_s=2, wait_ss=2
    )
    assert sooner(report, 5.0).wait_s == sooner(report, 5.0).wait_ss == 0
    assert sooner(report, 0.0) is report


def test_an_application_is_starting_until_its_part_reads_what_waits():
    made = pulls()
    ends = {"all-lines": {0: 130}, "shop.split": {0: 80}}
    made.begin({}, ends)
    assert made.reading.waits_for == "waiting for the first records of all-lines[0]"
    made.begin({"split": [tally(position=96)]}, ends)
    assert made.reading.waits_for == ""
    made.offsets.look()["all-lines"][0] = 400
    taken(made, {"split": [tally(position=400)]})
    assert not made.reading.stands_still
