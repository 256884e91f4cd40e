"""The protocol of a negotiator, which gets machines for an application and gives them back."""

from collections.abc import Collection
from typing import Protocol

__all__ = ["Negotiator"]


class Negotiator(Protocol):
    """Asks whoever has machines for nodes. Nodes come and go some time after.

    Its methods may be called at any time, in any thread, and raise only `EngineError`.
    """

    @property
    def wanted(self) -> int:
        """How many nodes there should be: those asked for, without those given back."""

    def ask(self, number: int) -> None:
        """Ask for *number* nodes in all; asking for as many again has no effect.

        Raise `EngineError` if that is fewer than wanted: `give_back` says which ones go.
        """

    def give_back(self, names: Collection[str]) -> None:
        """Give back the nodes with these names, which are not replaced.

        They take no more work, finish what they have begun, and go. Giving a node back twice
        has no further effect. Raise `EngineError`, and give nothing back, if there is no node
        of that name.
        """
