"""Reminders of keys: set with an answer, and records of their own once they are due.

A reminder is a root, from which records derive. Roots are identified by partition and offset
(`sojourn.spark.wire.repetitions`), so each operator has a partition of reminders. The offset is
the number of the reminder, assigned when it is due: numbers rise even if clocks do not, and a
pending reminder has none. The id depends on neither, so a record that is processed again sets
the same reminder.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec

from sojourn.app.reminder import reminders_of
from sojourn.spark.host.batch.cut import OpenRecord
from sojourn.spark.host.state.keyed_state import Change, KeyedState
from sojourn.spark.host.state.part_clock import PartClock
from sojourn.spark.host.state.schedule import Schedule, due_of, entry
from sojourn.spark.wire.record import Partition, Record, Reminded, Root


class _Pending(msgspec.Struct, array_like=True, frozen=True):
    """A reminder that is not due yet: its id and note, and fields of the record that set it."""

    name: str
    key: str
    note: str
    position: str
    message_key: bytes | None
    room: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Pending).decode

# Records made in one step, which keeps the event loop busy for a few milliseconds.
_AT_ONCE = 250


class Reminders:
    """The pending reminders of a part's operators, which are due by its *clock*.

    *marked* has the topic name of reminders, as it appears in ids, by operator. Methods yield
    changes; the caller must apply each before it takes the next.
    """

    def __init__(
        self, state: KeyedState, marked: Mapping[str, str], clock: PartClock | None = None
    ) -> None:
        self._partitions: dict[str, Partition] = {
            operator: (topic, 0) for operator, topic in marked.items()
        }
        self._schedules = {
            operator: Schedule(state, reminders_of(operator)) for operator in marked
        }
        self._clock = clock or PartClock()
        self._known = False
        self._numbers: dict[Partition, int] = {}

    @property
    def next_us(self) -> int | None:
        """When to call `due` next; None if no operator has reminders, or none was restored."""
        if not self._known:
            return None
        return min((schedule.next_us for schedule in self._schedules.values()), default=None)

    def restore(self, numbers: Mapping[Partition, int]) -> None:
        """Load the schedules from the restored state, with the next numbers of the cut.

        An operator without a number begins with the wall time in microseconds, which exceeds
        its earlier numbers if it was removed from the application and added again.
        """
        for schedule in self._schedules.values():
            schedule.forget()
        begun = dict.fromkeys(self._partitions.values(), self._clock.reading().wall_us)
        self._numbers, self._known = {**begun, **numbers}, True

    def entered(self, root: Root) -> None:
        """Advance the number of its partition past a root that the log has, if a reminder."""
        if (number := self._numbers.get(root.partition)) is not None:
            self._numbers[root.partition] = max(number, root.offset + 1)

    def numbers(self) -> dict[Partition, int]:
        """Return the next number by partition; all reminders before it are done or open."""
        return dict(self._numbers)

    def asked(
        self, operator: str, record: Record, reminders: Sequence[tuple[float, str]]
    ) -> Iterator[Change]:
        """Yield the changes that save the reminders that a record has set."""
        if record.key is None or not reminders:
            return
        began_us = self._clock.now_us()
        for number, (after_s, note) in enumerate(reminders):
            name = reminder_name(self._partitions[operator][0], record.name, number)
            pending = _Pending(
                name, record.key, note, record.position, record.message_key, record.room
            )
            due = entry(began_us + round(after_s * 1e6), name.rpartition("/")[2])
            content = _encode(pending)
            yield reminders_of(operator), due, content
            self._schedules[operator].added(due, content)

    def due(self) -> Iterator[tuple[Change, OpenRecord]]:
        """Yield reminders that are due as records, each with the change that removes it.

        Of many that are due, each operator yields its earliest, and `next_us` stays in the
        past until the rest is taken. Before a cut was restored nothing is known to be pending.
        """
        if not (self._known and self._schedules):
            return
        now_us, each = self._clock.now_us(), _AT_ONCE // max(1, len(self._schedules)) or 1
        for operator, schedule in self._schedules.items():
            for _ in range(each):
                if (found := schedule.due(now_us)) is None:
                    break
                due, content = found
                yield (schedule.name, due, b""), self._record(operator, due_of(due), content)

    def _record(self, operator: str, due_us: int, content: bytes) -> OpenRecord:
        pending, partition = _decode(content), self._partitions[operator]
        number = self._numbers[partition]
        self._numbers[partition] = number + 1
        due_s = self._clock.on_wall_s(due_us)
        payload = msgspec.json.encode(Reminded(pending.key, pending.note, due_s))
        record = Record(
            pending.name,
            payload,
            reminders_of(operator),
            key=pending.key,
            written_s=due_s,
            root=f"{partition[0]}/{partition[1]}/{number}",
            birth_s=due_s,
            room=pending.room,
            position=pending.position,
            message_key=pending.message_key,
        )
        return OpenRecord(Root(partition, number), operator, record)


def reminder_name(topic: str, asking: str, number: int) -> str:
    """Return the id of reminder *number* of those that the record *asking* sets.

    >>> reminder_name("count@reminders", "lines/0/7.split.2", 0)
    'count@reminders/24ef305dca7ddfcd3dcf06009c90deae'
    """
    return f"{topic}/{blake2b(f'{asking} {number}'.encode(), digest_size=16).hexdigest()}"
