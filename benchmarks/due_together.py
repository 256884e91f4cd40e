"""How long the event loop of a host is busy with reminders and states that are due together.

    python benchmarks/due_together.py [--due N…]

As after a night without the application: so many reminders are due when a host starts, or so
many states are too old. Their times are on disk, in the store, or among what has changed by the
last cut. A step is what happens between two looks at the sockets: what the desk decides, and
the log; its CPU time is measured, because the machine may have other work. The default run
takes a minute.
"""

import argparse
import tempfile
import time
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from sojourn.spark.host.__main__ import collect_seldom
from sojourn.spark.host.batch.cut import Cut, CutId
from sojourn.spark.host.batch.cut_store import CutFiles
from sojourn.spark.host.batch.ledger import Ledger
from sojourn.spark.host.desk.events import RelayCame, TimePassed
from sojourn.spark.host.desk.operator_desk import OperatorDesk
from sojourn.spark.host.desk.part_desk import PartDesk
from sojourn.spark.host.desk.part_graph import PartGraph
from sojourn.spark.host.state.expiry import Expiry
from sojourn.spark.host.state.keyed_state import KeyedState, MergeState
from sojourn.spark.host.state.part_clock import ClockReading, PartClock
from sojourn.spark.host.state.reminders import Reminders
from sojourn.spark.wire.record import Record

OPERATOR = "count"
REMINDED = {OPERATOR: f"{OPERATOR}@reminders"}
GRAPH = PartGraph(
    readers={"lines": (OPERATOR,), REMINDED[OPERATOR]: (OPERATOR,)},
    emits={OPERATOR: ()},
    stateful=frozenset([OPERATOR]),
)
NIGHT_S, TTL_S = 12 * 3600.0, 60.0


def changed(number, what):
    """Return the states of so many keys that asked for a reminder, or are to expire."""
    clock = PartClock(lambda: 0.0, lambda: 0.0)
    state, found = KeyedState(None), {}
    reminders = Reminders(state, REMINDED, clock)
    expiry = Expiry(_Nothing(), {OPERATOR: round(TTL_S * 1e6)})
    for each in range(number):
        key = f'["user {each}"]'
        if what == "reminders":
            record = Record(f"lines/0/{each}", b"", key=key, position=f"lines/0/{each}")
            changes = reminders.asked(OPERATOR, record, [(3600.0 + each % 600, "quiet?")])
        else:
            changes = expiry.changes(OPERATOR, key, b"x" * 60, round(1e6 * (each % 600)))
        for operator, name, value in changes:
            found.setdefault(operator, {})[name] = value
    return found


class _Nothing:
    """States of which there are none yet."""

    def of(self, _operator, _key):
        return b""


def steps_ms(folder, number, what, where):
    """Return how long each step takes until nothing is due any more."""
    states, files = changed(number, what), CutFiles(folder)
    cut = Cut(
        id=CutId(0, 1), taken={}, changed=(CutId(0, 1),), clock=ClockReading(0, round(1e12))
    )
    files.save(cut, states)
    if where == "store":
        files.state.merge(MergeState(0, [(cut.id, states)]))
    running_s = 0.0
    clock = PartClock(lambda: 1e6 + NIGHT_S, lambda: running_s)
    ledger = Ledger(files, reminded=REMINDED, clock=clock)
    desk = PartDesk(GRAPH, {OPERATOR: OperatorDesk()}, ledger, ttl_s={OPERATOR: TTL_S})
    desk.handle(RelayCame(1, CutId(1, 2)), 0.0)
    files.log.append(ledger.unlogged())
    running_s = 60.0  # the night counts from now on
    found, open_before = [], desk.inside
    while not found or (desk.due_s is not None and desk.due_s <= clock.now_s()):
        began_s = time.process_time()
        desk.handle(TimePassed(), running_s)
        files.log.append(ledger.unlogged())
        found.append(1e3 * (time.process_time() - began_s))
    came = desk.inside - open_before
    assert came == (number if what == "reminders" else 0)
    assert len(ledger.state.ordered(f"{OPERATOR}@expiry", "", "9", most=10)[0]) == 0
    files.close()
    return sorted(found)


def main():
    """Print the steps."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--due", type=int, nargs="+", default=[10_000, 100_000])
    told = parser.parse_args()
    collect_seldom()  # as hosts do
    table = Table(
        "due", "", "where", "steps", "median, ms", "longest, ms", "all, s", box=box.SIMPLE
    )
    for number in told.due:
        for what in ("reminders", "states"):
            for where in ("store", "last cut"):
                with tempfile.TemporaryDirectory() as folder:
                    ms = steps_ms(Path(folder), number, what, where)
                figures = f"{len(ms):,}", f"{ms[len(ms) // 2]:.1f}", f"{ms[-1]:.1f}"
                table.add_row(f"{number:,}", what, where, *figures, f"{sum(ms) / 1e3:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
