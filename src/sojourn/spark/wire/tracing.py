"""Traces of the trees of roots, and the ids of records in them."""

import hashlib

import msgspec

__all__ = ["DIGEST", "HEAD", "LONGEST", "Trace", "child_identity"]

LONGEST = 160
"""The maximum letters of an id beyond its root's: ids grow with each round of a loop."""
HEAD = 104
"""The letters that a longer id keeps, which include the operator at which the root entered."""
DIGEST = 32
"""The digits of its SHA-256 that replace the rest."""


class Trace(msgspec.Struct, array_like=True, frozen=True):
    """A processed record of a traced root."""

    root: str
    identity: str
    birth_s: float
    """The birth of the root."""
    done_s: float
    """When the record was done."""
    sojourn_s: float
    """The time since it was written to its stream."""
    weight: int
    """The number of roots that this one stands for."""
    children: list[tuple[str, str]]
    """Stream and id of each record that it sent."""


def child_identity(parent: str, operator: str, index: int | str, *, root: str) -> str:
    """Return the id of output number *index* of *operator* for the record *parent*.

    It is deterministic: a record that is processed again has children with the same ids.

    >>> child_identity("lines/0/7", "split", 2, root="lines/0/7")
    'lines/0/7.split.2'
    """
    identity = f"{parent}.{operator}.{index}"
    if len(identity) <= len(root) + LONGEST:
        return identity
    digest = hashlib.sha256(identity.encode()).hexdigest()[:DIGEST]
    return f"{identity[: len(root) + HEAD]}~{digest}"
