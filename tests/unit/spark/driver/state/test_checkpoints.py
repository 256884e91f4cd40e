"""What one start leaves for the next."""

import json
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from msgspec.structs import replace

import sojourn as sj
from sojourn.errors import BadFile, BadInput, EngineError
from sojourn.files.durable_file import write_durably
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.state_form import StateForm, state_forms
from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.query_runs import CheckpointId
from sojourn.spark.host.batch.spill import Spill
from sojourn.spark.host.state.keyed_state import MergeState
from sojourn.spark.task.sink_memory import SinkMemory
from sojourn.spark.wire.record import Record, Root


def shop(reads="lines", expression="count(*)"):
    app = sj.App("shop")
    streams = {name: app.source(name, schema="word string") for name in ("lines", "words")}

    @app.operator(reads=streams[reads], emits="word string")
    def split(word):
        yield (word,)

    app.aggregate("count", reads=split, by="word", columns={"n": expression})
    return app


def test_the_first_start_has_nothing_to_go_on_from_and_the_second_has(tmp_path):
    kept = Checkpoints(tmp_path / "state")
    assert not kept.check(shop(), "cluster-1")
    assert not kept.check(shop(), "cluster-1")
    kept.keep(shop(), "cluster-1")
    assert kept.check(shop(), "cluster-1")


@pytest.mark.parametrize(
    ("app", "cluster", "why"),
    [
        (
            shop(reads="words"),
            "c",
            r"split no longer reads topic shop\.lines; undo that",
        ),
        (shop(expression="max(word)"), "c", r"operator count was .*count\(\*\).*max\(word\)"),
        (shop(), "d", "it belongs to the Kafka cluster c, not d"),
        (sj.App("other"), "c", "it belongs to the application shop, not other"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_changed(tmp_path, app, cluster, why):
    kept = Checkpoints(tmp_path)
    kept.keep(shop(), "c")
    before = (tmp_path / "application.json").read_text()
    with pytest.raises(BadInput, match=why):
        kept.check(app, cluster)
    assert (tmp_path / "application.json").read_text() == before


def test_an_operator_that_is_new_is_no_reason_to_refuse(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.keep(shop(), "c")
    app = shop()
    app.project("more", reads=app.streams["split"], columns={"word": "word"})
    assert kept.check(app, "c")


def chain(*names, durable=False):
    """Return an application of operators that follow each other; the second may be durable."""
    app = sj.App("shop")
    stream = app.source("lines", schema="word string")
    for name in names:

        def passed(word):
            yield (word,)

        kept = {"durable": durable and name == names[0]}
        stream = app.operator(reads=stream, emits="word string", name=name, **kept)(passed)
    return app


def test_reminders_that_are_open_are_gone_on_with(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.keep(chain("split", "count"), "c")
    (kept.checkpoint("split") / "commits").mkdir(parents=True)
    (kept.checkpoint("split") / "commits" / "0").write_text("v1")
    due = Record("count@reminders/x", b"", "count@reminders")
    open_record = OpenRecord(Root(("count@reminders", 0), 3), "count", due)
    CutFiles(kept.cuts("split")).save(Cut(id=CutId(0, 1), taken={}, open=(open_record,)))
    assert kept.check(chain("split", "count"), "c")
    with pytest.raises(BadInput, match="count@reminders has records for operator count"):
        kept.check(chain("split"), "c")


@pytest.mark.parametrize("spilled", [False, True])
def test_operators_may_be_added_to_a_part_and_leave_it_when_nothing_of_them_is_open(
    tmp_path, spilled
):
    kept = Checkpoints(tmp_path)
    kept.keep(chain("split", "count"), "c")
    assert kept.check(chain("split", "clean", "count"), "c")
    assert kept.check(chain("split"), "c")
    (kept.checkpoint("split") / "commits").mkdir(parents=True)
    (kept.checkpoint("split") / "commits" / "0").write_text("v1")
    open_record = OpenRecord(Root(("lines", 0), 3), "count", Record("x", b"", "split"))
    cut, files = Cut(id=CutId(0, 1), taken={}), CutFiles(kept.cuts("split"))
    if spilled:
        spill = Spill(files.segments)
        spill.put(0, open_record)
        cut = replace(cut, spilled=spill.segments(0))
    else:
        cut = replace(cut, open=(open_record,))
    files.save(cut)
    assert kept.check(chain("split", "count", "store"), "c")
    with pytest.raises(BadInput, match="split has records for operator count, which no longer"):
        kept.check(chain("split", "clean", "count"), "c")
    with pytest.raises(BadInput, match="split has records for operator count, which no longer"):
        kept.check(chain("split"), "c")


def test_a_stream_that_becomes_durable_divides_a_part_and_is_refused(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.keep(chain("split", "count"), "c")
    with pytest.raises(BadInput, match="operator count is no longer in one part with split"):
        kept.check(chain("split", "count", durable=True), "c")


def counting(state=None, *, schema="word string, day date", by=("word",), name="count"):
    """Return an application that keeps a state for each key."""
    app = sj.App("shop")
    lines = app.source("lines", schema=schema)

    @app.operator(reads=lines, emits=schema)
    def split(word, day):
        yield (word, day)

    if state is None:

        @app.operator(reads=split.by(*by), name=name)
        def passed(word, day):
            pass

    else:

        @app.operator(reads=split.by(*by), name=name, state=state)
        def counted(state, word, day):
            pass

    return app


def with_state(folder, app, *operators, merged=False):
    """Leave a committed batch in which these operators have the state of a key."""
    kept = Checkpoints(folder)
    kept.keep(app, "c")
    (kept.checkpoint("split") / "commits").mkdir(parents=True)
    (kept.checkpoint("split") / "commits" / "0").write_text("v1")
    cut, files = CutId(0, 1), CutFiles(kept.cuts("split"))
    changed = {operator: {'["the"]': b"state"} for operator in operators}
    files.save(Cut(id=cut, taken={}, changed=(cut,)), changed)
    if merged:
        with closing(files.state):
            files.state.merge(MergeState(0, [(cut, changed)]))
    return kept


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize(
    ("app", "why"),
    [
        (
            counting({"n": ""}),
            (
                r"operator count has a state for each key: field n was bigint, now it is "
                r"string \(give it another name\); undo that change, .*without it \(--fresh\)"
            ),
        ),
        (
            counting({"seen": ("array<int>", []), "n": 0}),
            "field seen was array<string>, now it is array<int>",
        ),
        (counting({"n": 0}, by=("day",)), "its key was string, now it is date"),
        (counting({"n": 0}, by=("word", "day")), "its key was string, now it is string, date"),
        (
            counting({"n": 0.0}, schema="word bigint, day date"),
            "its key was string, now it is bigint; field n was bigint, now it is double",
        ),
        (counting(), "operator count has a state for each key: it declares none now; undo"),
        (
            counting({"n": 0}, name="counts"),
            "operator count has a state for each key: it was removed; undo that change",
        ),
    ],
)
def test_a_form_in_which_states_cannot_be_read_is_refused(tmp_path, app, why, merged):
    first = counting({"n": 0, "seen": ("array<string>", [])})
    kept = with_state(tmp_path, first, "count", merged=merged)
    with pytest.raises(BadInput, match=why):
        kept.check(app, "c")
    assert kept.check(first, "c")


@pytest.mark.parametrize("app", [counting(), counting({"n": 0}, name="counts")])
def test_nor_may_an_operator_go_for_which_reminders_are_pending(tmp_path, app):
    kept = with_state(tmp_path, counting({"n": 0}), "count@reminders")
    with pytest.raises(BadInput, match="operator count has a state for each key"):
        kept.check(app, "c")


@pytest.mark.parametrize("app", [counting(), counting({"n": 0}, name="counts")])
def test_an_operator_that_has_no_state_of_any_key_may_go(tmp_path, app):
    assert with_state(tmp_path, counting({"n": 0}), "others").check(app, "c")


def test_fields_may_come_and_go_and_operators_with_state_may_be_added(tmp_path):
    kept = with_state(tmp_path, counting({"n": 0}), "count")
    assert kept.check(counting({"n": 0, "seen": ("array<string>", [])}), "c")
    assert kept.check(counting({"sum": 0.0}), "c")
    assert kept.check(counting({"n": 5}), "c")
    more = counting({"n": 0})

    @more.operator(reads=more.streams["split"].by("day"), state={"n": 0})
    def days(state, word, day):
        pass

    assert kept.check(more, "c")
    assert with_state(tmp_path / "other", counting(), "others").check(counting({"n": 0}), "c")


def test_a_field_that_was_removed_comes_back_with_its_type_only(tmp_path):
    """States that have not changed since then still contain it."""
    kept = with_state(tmp_path, counting({"n": 0, "sum": 0}), "count")
    for app in (counting({"n": 0}), counting({"n": 0, "seen": ("array<string>", [])})):
        assert kept.check(app, "c")
        kept.keep(app, "c")
    with pytest.raises(BadInput, match="field sum was bigint, now it is double"):
        kept.check(counting({"n": 0, "sum": 0.0}), "c")
    assert kept.check(counting({"n": 0, "sum": 7}), "c")


def test_what_is_recorded_of_a_state_describes_it_without_the_application(tmp_path):
    kept = Checkpoints(tmp_path)
    state = {
        "n": 3,
        "at": ("timestamp", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        "parts": ("array<struct<a: int, `b c`: decimal(4,2)>>", [(1, Decimal("2.50"))]),
        "raw": b"\xff",
        "gone": ("double", None),
    }
    kept.keep(counting(state, by=("word", "day")), "c")
    form = StateForm.read(kept.form()["states"]["count"])
    assert form == state_forms(counting(state, by=("word", "day")))["count"]
    assert [str(field) for field in form.key] == ["word string", "day date"]


def test_a_state_of_another_version_is_refused(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.keep(shop(), "c")
    recorded = tmp_path / "application.json"
    form = json.loads(recorded.read_text())
    for other in ({**form, "format": 99}, {k: v for k, v in form.items() if k != "format"}):
        recorded.write_text(json.dumps(other))
        with pytest.raises(BadFile, match=r"has a state of format (99|1), .* reads 2; use the"):
            kept.check(shop(), "c")


def test_what_cannot_be_read_is_named(tmp_path):
    (tmp_path / "application.json").write_text("{")
    with pytest.raises(BadFile, match=r"application\.json: cannot be read"):
        Checkpoints(tmp_path).check(shop(), "c")


def test_before_the_first_commit_it_begins_where_the_first_start_began(tmp_path):
    """What a start had taken that was killed before it committed must come again."""
    kept = Checkpoints(tmp_path)
    kept.begin("split", {"lines": {0: 7, 1: 9}})
    kept.begin("split", {"lines": {0: 50, 1: 60}})
    assert kept.positions("split", {"lines": {0: 0, 1: 0}}) == {"lines": {0: 7, 1: 9}}


def test_what_a_start_had_noted_that_failed_is_of_no_use_to_the_next(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.begin("split", {"lines": {0: 7}}, anew=True)
    kept.begin("split", {"lines": {0: 50}}, anew=True)
    assert kept.positions("split", {"lines": {0: 0}}) == {"lines": {0: 50}}


def test_after_a_commit_it_begins_there(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.begin("split", {"lines": {0: 7}})
    for number, offset in ((0, 10), (1, 20), (2, 30)):
        offsets = kept.checkpoint("split") / "offsets" / str(number)
        offsets.parent.mkdir(parents=True, exist_ok=True)
        offsets.write_text(f'v1\n{{"conf":{{}}}}\n{json.dumps({"lines": {"0": offset}})}')
    commits = kept.checkpoint("split") / "commits"
    commits.mkdir()
    for name in ("0", "1", ".1.crc"):
        (commits / name).write_text("v1\n{}")
    assert kept.positions("split", {"lines": {0: 99}}) == {"lines": {0: 20}}


def test_a_partition_that_is_new_begins_where_it_is_asked_to(tmp_path):
    kept = Checkpoints(tmp_path)
    kept.begin("split", {"lines": {0: 7}})
    assert kept.positions("split", {"lines": {0: 50, 1: 3}}) == {"lines": {0: 7, 1: 3}}


def test_where_it_began_must_be_readable(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "split.json").write_text("")
    with pytest.raises(BadFile, match=r"split\.json: cannot be read"):
        Checkpoints(tmp_path).positions("split", {"lines": {0: 0}})


def test_a_full_disk_is_named_and_nothing_of_the_state_is_lost(small_disk):
    kept = Checkpoints(small_disk / "state")
    begin, new = {"lines": {0: 7}}, {"lines": {0: 0}}
    kept.begin("split", begin)
    kept.keep(shop(), "c")
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filled").write_bytes(bytes(1 << 20))
    for write in (
        lambda: kept.begin("count", begin),
        lambda: kept.keep(shop(expression="max(word)"), "c"),
    ):
        with pytest.raises(
            EngineError, match=f"No space left on device; make room in {kept.folder}"
        ):
            write()
    assert kept.check(shop(), "c")
    assert kept.positions("split", new) == begin


def projecting(where, **settings):
    """Return an application with a projection before its function, or behind it."""
    app = sj.App("shop")
    stream = app.source("lines", schema="word string")
    columns = {"columns": {"word": "upper(word)"}, "emits": "word string"}
    if where == "before":
        stream = app.project("upper", reads=stream, **columns, **settings)

    @app.operator(reads=stream, emits="word string")
    def split(word):
        yield (word,)

    if where == "behind":
        split = app.project("upper", reads=split, **columns, **settings)
    app.sink(split)
    return app


@pytest.mark.parametrize("where", ["before", "behind"])
def test_a_projection_that_had_a_query_of_its_own_is_refused_in_that_of_a_part(tmp_path, where):
    """What is in the topic between them would be lost."""
    kept = Checkpoints(tmp_path)
    kept.keep(projecting(where, durable=True), "c")
    assert kept.check(projecting(where, durable=True), "c")
    with pytest.raises(
        BadInput, match=r"upper was a query of its own, and now runs in that of split .*durable"
    ):
        kept.check(projecting(where), "c")


def test_a_projection_that_leaves_the_query_of_a_part_goes_on_where_nothing_is_lost(tmp_path):
    """Behind a part, its query begins with what the part writes from then on."""
    kept = Checkpoints(tmp_path)
    kept.keep(projecting("behind"), "c")
    assert kept.check(projecting("behind"), "c")
    assert kept.check(projecting("behind", durable=True), "c")
    kept.keep(projecting("before"), "c")
    assert kept.check(projecting("before"), "c")
    with pytest.raises(BadInput, match=r"split no longer reads topic shop\.lines"):
        kept.check(projecting("before", durable=True), "c")


@pytest.mark.parametrize("left", [None, "", "{}", '{"id":"another"}'])
def test_a_checkpoint_that_was_removed_or_replaced_under_its_state_is_refused(tmp_path, left):
    """The batches of another one begin with 0 again, and would be taken for committed ones."""
    kept = Checkpoints(tmp_path)
    metadata = kept.checkpoint("split") / "metadata"
    kept.check_queries(["split"])  # it has not begun
    assert CheckpointId(kept.cuts("split")).refusal("first") == ""
    metadata.write_text('{"id":"first"}')
    kept.check_queries(["split"])
    metadata.unlink() if left is None else metadata.write_text(left)
    problem = "has the id another" if left and "another" in left else "is gone"
    with pytest.raises(BadFile) as raised:
        kept.check_queries(["split"])
    assert str(raised.value) == (
        f"{kept.checkpoint('split')}: the checkpoint of split {problem}, and the state belongs "
        "to first; restore it, or start without this state (--fresh)"
    )


def test_a_query_whose_checkpoint_is_not_known_is_not_refused(tmp_path):
    assert CheckpointId(tmp_path).refusal("") == ""
    assert CheckpointId(tmp_path).refusal("first") == ""
    assert CheckpointId(tmp_path).refusal("") == ""


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_versions_that_were_not_completed_are_removed(tmp_path):
    state = Checkpoints(tmp_path, tmp_path / "shared", frozenset({"sink once"}))
    state.begin("split", {"lines": {0: 0}})
    memory = SinkMemory(state.checkpoint("sink once") / "memory")
    memory.note_sink_end(0, 7, 3)
    assert memory.load(0, 7) is None  # which changes the folder for a moment
    CutFiles(state.cuts("split")).attempts.number("run")
    write_durably(tmp_path / "application.json", b"{}")
    kept = files(tmp_path)
    for path in [path for path in tmp_path.rglob("*") if path.is_file()]:
        path.with_name(f"{path.name}.new").write_text("half")  # killed before it had its name
    state.remove_leftovers(["split"])
    assert files(tmp_path) == kept


def test_of_attempts_the_last_stays_so_that_numbers_never_come_again(tmp_path):
    state = Checkpoints(tmp_path)
    cuts = CutFiles(state.cuts("split"))
    assert [cuts.attempts.number(f"run {number}") for number in range(1, 13)] == list(
        range(1, 13)
    )
    state.remove_leftovers(["split", "a part that has not begun"])
    assert {path.name for path in (cuts.folder / "attempts").iterdir()} == {"12"}
    assert (cuts.attempts.number("run 12"), cuts.attempts.number("the next")) == (12, 13)
