"""The payload of a reminder."""

import msgspec

__all__ = ["Reminded", "reminder_key"]


class Reminded(msgspec.Struct, frozen=True):
    """The payload of a reminder that is due."""

    key: str
    note: str
    due_s: float


def reminder_key(payload: bytes) -> str | None:
    """Return the key in the payload of a reminder; None if it cannot be decoded."""
    try:
        return msgspec.json.decode(payload, type=Reminded).key
    except msgspec.MsgspecError:
        return None
