"""The payload of a reminder."""

import msgspec

__all__ = ["Reminded", "reminder_key"]


class Reminded(msgspec.Struct, frozen=True):
    """The payload of a reminder that is due."""

    key: str
    note: str
    due_s: float


def reminder_key(payload: bytes) -> str | None:
    """Return the key that a reminder is for; None if it is none."""
    try:
        return msgspec.json.decode(payload, type=Reminded).key
    except msgspec.MsgspecError:
        return None
