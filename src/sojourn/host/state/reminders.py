"""Reminders of keys: asked for with an answer, and records of their own once they are due.

A reminder is the root of what comes of it. Roots are told apart by partition and offset
(`sojourn.host.batch.repetitions`), so each operator has a partition of reminders, with the time
at which one is due for its offset. Its id does not depend on the time: a record that is worked
on again asks for the same reminder.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b

import msgspec

from sojourn.app.reminder import reminders_of
from sojourn.host.batch.cut import OpenRecord, Partition, Root
from sojourn.host.process.messages import Record
from sojourn.host.state.keyed_state import Change, KeyedState
from sojourn.host.state.schedule import Schedule, due_of, entry

__all__ = ["Reminded", "Reminders", "reminder_key", "reminder_name"]


class Reminded(msgspec.Struct, frozen=True):
    """The payload of a reminder that is due."""

    key: str
    note: str
    due_s: float


class _Pending(msgspec.Struct, array_like=True, frozen=True):
    """A reminder that is not due yet: its id, and what it has of the record that asked."""

    name: str
    key: str
    note: str
    place: str
    message_key: bytes | None
    room: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Pending).decode


class Reminders:
    """What is to be called for keys of operators, by the clock.

    *marked* are the names that the partitions of operators have in ids. The clock never goes
    back: what all was done by a cut is told by the time of it. Changes are yielded; each is to
    be made before the next is asked for.
    """

    def __init__(self, state: KeyedState, marked: Mapping[str, str]) -> None:
        self._partitions: dict[str, Partition] = {
            operator: (topic, 0) for operator, topic in marked.items()
        }
        self._schedules = {
            operator: Schedule(state, reminders_of(operator)) for operator in marked
        }
        self._now_us: int | None = None

    @property
    def next_us(self) -> int | None:
        """When the next one is due; None if none is soon."""
        known = (schedule.next_us for schedule in self._schedules.values())
        return min((due_us for due_us in known if due_us is not None), default=None)

    def restore(self, floors: Mapping[Partition, int]) -> None:
        """Begin again with what the state has, after a cut with these floors."""
        for schedule in self._schedules.values():
            schedule.forget()
        self._now_us = max(floors.values(), default=0)

    def floors(self) -> dict[Partition, int]:
        """Return the time, by partition, before which nothing is pending.

        All that was due by then is done or open, and nothing is asked for before it.
        """
        if self._now_us is None:
            return {}
        return dict.fromkeys(self._partitions.values(), self._now_us)

    def asked(
        self, operator: str, record: Record, reminders: Sequence[tuple[float, str]], now_us: int
    ) -> Iterator[Change]:
        """Yield the changes that keep the reminders that came of a record, from now on."""
        if record.key is None:
            return
        began_us = max(now_us, self._now_us or 0)
        for number, (after_s, note) in enumerate(reminders):
            name = reminder_name(self._partitions[operator][0], record.name, number)
            pending = _Pending(
                name, record.key, note, record.place, record.message_key, record.room
            )
            due = entry(began_us + round(after_s * 1e6), name.rpartition("/")[2])
            content = _encode(pending)
            yield reminders_of(operator), due, content
            self._schedules[operator].added(due, content)

    def due(self, now_us: int) -> Iterator[tuple[Change, OpenRecord]]:
        """Yield the records of what is due, the earliest first, with the change that it means.

        Nothing before a cut was restored: it is not known what is pending.
        """
        if self._now_us is None:
            return
        self._now_us = max(self._now_us, now_us)
        for operator, schedule in self._schedules.items():
            while (found := schedule.due(self._now_us)) is not None:
                due, content = found
                yield (schedule.name, due, b""), self._record(operator, due_of(due), content)

    def _record(self, operator: str, due_us: int, content: bytes) -> OpenRecord:
        pending, (topic, number) = _decode(content), self._partitions[operator]
        due_s = due_us / 1e6
        payload = msgspec.json.encode(Reminded(pending.key, pending.note, due_s))
        record = Record(
            pending.name,
            payload,
            reminders_of(operator),
            key=pending.key,
            written_s=due_s,
            root=f"{topic}/{number}/{due_us}",
            birth_s=due_s,
            room=pending.room,
            place=pending.place,
            message_key=pending.message_key,
        )
        return OpenRecord(Root((topic, number), due_us), operator, record)


def reminder_key(payload: bytes) -> str | None:
    """Return the key that a reminder is for; None if it is none."""
    try:
        return msgspec.json.decode(payload, type=Reminded).key
    except msgspec.MsgspecError:
        return None


def reminder_name(topic: str, asking: str, number: int) -> str:
    """Return the id of the reminder of that *number* that a record asks for.

    >>> reminder_name("count@reminders", "lines/0/7.split.2", 0)
    'count@reminders/24ef305dca7ddfcd3dcf06009c90deae'
    """
    return f"{topic}/{blake2b(f'{asking} {number}'.encode(), digest_size=16).hexdigest()}"
