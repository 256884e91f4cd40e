"""Following the tree of a root: what each of its records tells when it is done."""

import hashlib

import msgspec

__all__ = ["DIGEST", "HEAD", "LONGEST", "Trace", "child_identity"]

LONGEST = 160
"""The letters that an id may have after that of its root: more come of going round a loop."""
HEAD = 104
"""How many of a longer one stay: with them, that of the operator at which the root entered."""
DIGEST = 32
"""How many digits of its SHA-256 follow."""


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


def child_identity(parent: str, operator: str, place: int | str, *, root: str) -> str:
    """Return the identity of the record at *place* among what *operator* made of *parent*.

    The same record gives the same children when it comes again, if the function does.

    >>> child_identity("lines/0/7", "split", 2, root="lines/0/7")
    'lines/0/7.split.2'
    """
    identity = f"{parent}.{operator}.{place}"
    if len(identity) <= len(root) + LONGEST:
        return identity
    digest = hashlib.sha256(identity.encode()).hexdigest()[:DIGEST]
    return f"{identity[: len(root) + HEAD]}~{digest}"
