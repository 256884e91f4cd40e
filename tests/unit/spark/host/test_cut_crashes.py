"""Cuts that are written when the process is killed, or the power fails, at any system call."""

from contextlib import suppress
from itertools import count
from random import Random

import pytest

from sojourn.spark.host.batch.cut import Cut, CutId, OpenRecord, Segment
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.state.keyed_state import MergeState
from sojourn.spark.wire.record import Record, Root
from unit.spark.host.failing_disk import Crash, FailingDisk

LINES = ("lines", 0)
DELTAS = [{"count": {"a": b"1"}}, {"count": {"a": b"2"}}, {"count": {"b": b"1"}}]


def spilled(files, batch):
    record = OpenRecord(Root(LINES, batch), "count", Record(f"lines/0/{batch}", b"x" * 100))
    return Segment("count", files.segments.write(batch, [record]), 1, 100, {LINES: batch})


def written(files, told):
    """Write the cuts of three batches; those that are on disk are *told*."""
    segments = ()
    for batch, delta in enumerate(DELTAS):
        segments = (*segments, spilled(files, batch))
        changed = tuple(CutId(each, 1) for each in range(max(0, batch - 1), batch + 1))
        cut = Cut(id=CutId(batch, 1), taken={LINES: batch}, spilled=segments, changed=changed)
        files.save(cut, delta)
        told.append(cut.id)
        files.drop_before(batch - 1)
        if batch > 0:  # Spark has committed the one before
            files.state.merge(MergeState(batch - 1, [(CutId(batch - 1, 1), DELTAS[batch - 1])]))


def check(files, told):
    """Look at all that a cut names, of those on disk and of the two that may be needed."""
    for cut in {*files.cuts(), *told[-2:]}:
        found = files.load(cut)
        assert sum(1 for _ in files.all_open(found)) == len(found.spilled)
        for changed in found.changed:
            if changed.batch > files.state.merged():
                assert files.state.read_delta(changed) == DELTAS[changed.batch]
    assert files.state.merged() >= len(told) - 3


@pytest.mark.parametrize("seed", [None, 1, 2, 3, 4])
def test_a_cut_is_on_disk_with_all_that_it_names_or_not_at_all(tmp_path, seed):
    """Without a seed the process is killed; with one, the power fails as it says."""
    for calls in count():
        folder, told = tmp_path / str(calls), []
        folder.mkdir()
        with FailingDisk(folder) as disk:
            files = CutFiles(folder / "part")
            disk.crash_after(calls, part=calls % 3 / 2)
            with suppress(Crash):
                written(files, told)
            files.close()
            crashed = disk.dead
            disk.revive()
            if seed is not None:
                disk.power_fails(Random(100 * seed + calls))
            files = CutFiles(folder / "part")
            check(files, told)
            files.close()
        if not crashed:
            break
    assert calls > 20
