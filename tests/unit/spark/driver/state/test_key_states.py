"""What is kept for each key, read by another process than the one that writes it."""

import multiprocessing
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyarrow import parquet

from sojourn.errors import BadFile, BadInput
from sojourn.report.parquet import states_to_parquet
from sojourn.spark.driver.state.key_states import KeyStates
from state_folders import StateWriter, counting, write_until

pytestmark = pytest.mark.timeout(60)


def found(folder):
    return {each.key: each.values["n"] for each in KeyStates(folder).every("count")}


def test_what_is_committed_is_read_whether_merged_or_not(tmp_path):
    writer = StateWriter(tmp_path, counting())
    assert found(tmp_path) == {}
    writer.commit({'["a"]': {"n": 1}, '["b"]': {"n": 1}})
    assert found(tmp_path) == {'["a"]': 1, '["b"]': 1}
    writer.merge()
    assert found(tmp_path) == {'["a"]': 1, '["b"]': 1}
    writer.commit({'["b"]': {"n": 0}, '["c"]': {"n": 2}})
    writer.save({'["a"]': {"n": 9}})
    assert found(tmp_path) == {'["a"]': 1, '["c"]': 2}, "the last batch is not committed"
    writer.commit()
    assert found(tmp_path) == {'["a"]': 9, '["c"]': 2}


def test_a_batch_is_committed_once_the_next_has_a_cut(tmp_path):
    """The commits of a query of the user's own (`Stage`) are not in the state folder."""
    writer = StateWriter(tmp_path, counting())
    writer.save({'["a"]': {"n": 1}})
    assert found(tmp_path) == {}
    writer.save({'["a"]': {"n": 2}, '["b"]': {"n": 1}})
    assert found(tmp_path) == {'["a"]': 1}
    writer.merge()
    assert found(tmp_path) == {'["a"]': 2, '["b"]': 1}
    summary = KeyStates(tmp_path).summary("count")
    assert (summary.batch, summary.committed_s) == (1, None)


def test_a_summary_counts_keys_and_bytes_and_names_the_largest(tmp_path):
    writer = StateWriter(tmp_path, counting({"text": ""}))
    states = KeyStates(tmp_path)
    none = states.summary("count")
    assert (none.keys, none.bytes, none.batch, none.committed_s) == (0, 0, -1, None)
    texts = {f'["k{number}"]': {"text": "x" * number} for number in range(1, 13)}
    writer.commit(texts)
    writer.merge()
    writer.commit({'["k3"]': {"text": "x" * 100}})
    summary = states.summary("count")
    assert (summary.keys, summary.batch) == (12, 1)
    assert summary.committed_s == pytest.approx(datetime.now(UTC).timestamp(), abs=60)
    sizes = {each.key: each.bytes for each in states.every("count")}
    assert summary.bytes == sum(sizes.values())
    largest = sorted(sizes.items(), key=lambda item: -item[1])[:10]
    assert [size for _, size in summary.largest] == [size for _, size in largest]
    assert summary.largest[0][0] == '["k3"]'
    assert str(summary.form.fields) == "text string"


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize(
    ("schema", "by", "kept", "key"),
    [
        ("word string", ["word"], '["the"]', "the"),
        ("word string", ["word"], '["the"]', '["the"]'),
        ("word string", ["word"], '["[5]"]', "[5]"),
        ("word string", ["word"], '["\\u00e4"]', "ä"),
        ("word string", ["word"], "[null]", "null"),
        ("word string", ["word"], f'["{"k" * 2000}"]', "k" * 2000),
        ("id bigint", ["id"], "[5]", "5"),
        ("id double", ["id"], "[5.0]", "5"),
        ("day date", ["day"], '["2026-01-31"]', "2026-01-31"),
        ("word string, id int", ["word", "id"], '["the", 5]', '["the",5]'),
    ],
)
def test_a_key_is_named_by_its_values(tmp_path, schema, by, kept, key, merged):
    writer = StateWriter(tmp_path, counting(schema=schema, by=by))
    writer.commit({kept: {"n": 7}, "[0]": {"n": 1}})
    if merged:
        writer.merge()
    state = KeyStates(tmp_path).of("count", key)
    assert (state.key, state.values) == (kept, {"n": 7})


def test_a_key_without_a_state_is_told_with_the_defaults(tmp_path):
    app = counting(schema="word string, id int", by=("word", "id"))
    StateWriter(tmp_path, app).commit({'["the", 5]': {"n": 1}})
    states = KeyStates(tmp_path)
    with pytest.raises(BadInput, match=r'no state of key .*the.*6.*has the defaults, {"n": 0}'):
        states.of("count", '["the", 6]')
    way_out = "write a JSON list of the values of word string, id int"
    for key in ("the", '["the"]'):
        with pytest.raises(BadInput, match=f"is not a key; {way_out}"):
            states.of("count", key)


def test_fields_of_the_last_start_are_shown(tmp_path):
    writer = StateWriter(tmp_path, counting({"n": 0, "gone": 0}))
    writer.commit({'["a"]': {"n": 1, "gone": 5}})
    StateWriter(tmp_path, counting({"n": 0, "added": 3.5}))
    assert KeyStates(tmp_path).of("count", "a").values == {"n": 1, "added": 3.5}


def test_a_folder_or_an_operator_without_state_is_named(tmp_path):
    with pytest.raises(BadInput, match="nowhere is not the state folder of an application"):
        KeyStates(tmp_path / "nowhere")
    (tmp_path / "application.json").write_text("{")
    with pytest.raises(BadFile, match=r"application\.json: cannot be read"):
        KeyStates(tmp_path)
    StateWriter(tmp_path / "words", counting())
    with pytest.raises(
        BadInput, match=r"words has no operator 'split' with a state; .*: count"
    ):
        KeyStates(tmp_path / "words").summary("split")


def test_a_state_is_exported_with_the_types_of_key_and_fields(tmp_path):
    schema = "word string, day date, price decimal(6,2), at timestamp, x float"
    fields = {
        "n": 0,
        "word": "",
        "seen": ("array<struct<a: int, b: double>>", []),
        "by_day": ("map<date, bigint>", {}),
        "at": ("timestamp_ntz", None),
        "raw": b"",
    }
    names = ("word", "day", "price", "at", "x")
    writer = StateWriter(tmp_path / "s", counting(fields, schema=schema, by=names))
    key = '["the", "2026-01-31", 1.25, "2026-01-31T12:00:00+00:00", 0.5]'
    day = date(2026, 1, 31)
    values = {
        "n": 3,
        "word": "x",
        "seen": [(1, 0.5), None],
        "by_day": {day: 4},
        "at": datetime(2026, 1, 31, 12),  # noqa: DTZ001 - that is its type
        "raw": b"\xff",
    }
    nulls = "[null, null, null, null, null]"
    more = {f'["{number}", null, null, null, null]': {**values} for number in range(3)}
    writer.commit({key: values, nulls: {**values, "at": None}, **more})
    path = tmp_path / "out.parquet"
    states = KeyStates(tmp_path / "s")
    assert states_to_parquet(path, states, "count", together=2) == 5
    table = parquet.read_table(path)
    assert {field.name: str(field.type) for field in table.schema} == {
        "word": "string",
        "day": "date32[day]",
        "price": "decimal128(6, 2)",
        "at": "timestamp[us, tz=UTC]",
        "x": "float",
        "n": "int64",
        "state_word": "string",
        "seen": "list<element: struct<a: int32, b: double>>",
        "by_day": "map<date32[day], int64 ('by_day')>",
        "state_at": "timestamp[us]",
        "raw": "binary",
    }
    (row,) = (row for row in table.to_pylist() if row["word"] == "the")
    assert row == {
        "word": "the",
        "day": day,
        "price": Decimal("1.25"),
        "at": datetime(2026, 1, 31, 12, tzinfo=UTC),
        "x": 0.5,
        "n": 3,
        "state_word": "x",
        "seen": [{"a": 1, "b": 0.5}, None],
        "by_day": [(day, 4)],
        "state_at": values["at"],
        "raw": b"\xff",
    }
    assert parquet.ParquetFile(path).num_row_groups == 3


def test_all_is_of_one_moment_while_another_process_writes(tmp_path):
    """It commits and merges as fast as it can, so files come and go between any two steps."""
    spawned = multiprocessing.get_context("spawn")
    begun, stop = spawned.Event(), spawned.Event()
    process = spawned.Process(target=write_until, args=(tmp_path, begun, stop))
    process.start()
    try:
        assert begun.wait(30)
        states, last = KeyStates(tmp_path), 0
        for _ in range(100):
            numbers = {each.values["n"] for each in states.every("count")}
            assert len(numbers) == 1
            assert last <= min(numbers)
            (last,) = numbers
            summary = states.summary("count")
            assert (summary.keys, summary.batch >= last - 1) == (200, True)
            assert states.of("count", "k7").values["n"] >= last
    finally:
        stop.set()
        process.join(30)
    assert process.exitcode == 0
    assert found(tmp_path).keys() == {f'["k{key}"]' for key in range(200)}
