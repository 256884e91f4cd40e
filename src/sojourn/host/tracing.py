"""Following the tree of a root: what each of its records tells when it is done."""

import msgspec

__all__ = ["Trace", "child_identity"]


class Trace(msgspec.Struct, array_like=True, frozen=True):
    """A record of a followed root is done, *sojourn_s* after it was written to its stream.

    *children* are the streams that it sent records to, with their identities. *weight* is the
    number of roots that this one stands for.
    """

    root: str
    identity: str
    birth_s: float
    done_s: float
    sojourn_s: float
    weight: int
    children: list[tuple[str, str]]


def child_identity(parent: str, operator: str, place: int) -> str:
    """Return the identity of the record at *place* among what *operator* made of *parent*.

    The same record gives the same children when it comes again, if the function does.

    >>> child_identity("lines/0/7", "split", 2)
    'lines/0/7.split.2'
    """
    return f"{parent}.{operator}.{place}"
