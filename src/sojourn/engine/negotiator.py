"""The protocol of a negotiator, which requests nodes from a cluster and gives them back."""

from collections.abc import Collection
from typing import Protocol

__all__ = ["Negotiator"]


class Negotiator(Protocol):
    """Requests nodes from a cluster, and gives them back; nodes join and leave later.

    Its methods are thread-safe, and raise only `EngineError`.
    """

    @property
    def wanted(self) -> int:
        """The target number of nodes: those requested, without those given back."""

    def ask(self, number: int) -> None:
        """Request *number* nodes in total. Idempotent.

        Raise `EngineError` if that is below `wanted`: `give_back` chooses the nodes to leave.
        """

    def give_back(self, names: Collection[str]) -> None:
        """Give back the nodes called *names*, without replacement. Idempotent.

        They take no more work, finish their work in progress, and leave. Raise `EngineError`,
        and give nothing back, if there is no node of that name.
        """
