"""A start removes what killed runs have left, and nothing that is read again."""

from sojourn.files.durable_file import write_durably
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.driver.state.leftovers import remove_leftovers
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.task.deduplicate.sink_memory import SinkMemory


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
    remove_leftovers(state, ["split"])
    assert files(tmp_path) == kept


def test_of_attempts_the_last_stays_so_that_numbers_never_come_again(tmp_path):
    state = Checkpoints(tmp_path)
    cuts = CutFiles(state.cuts("split"))
    assert [cuts.attempts.number(f"run {number}") for number in range(1, 13)] == list(
        range(1, 13)
    )
    remove_leftovers(state, ["split", "a part that has not begun"])
    assert {path.name for path in (cuts.folder / "attempts").iterdir()} == {"12"}
    assert (cuts.attempts.number("run 12"), cuts.attempts.number("the next")) == (12, 13)
