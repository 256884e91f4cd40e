"""Machines of equal size, by which processors are counted."""

from dataclasses import dataclass

from sojourn.errors import BadTarget

__all__ = ["Nodes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """Processors that come by the machine.

    *reserved* of all the slots serve something else: sources, the controller itself.

    >>> machines = Nodes(slots=5, reserved=3)
    >>> machines.processors(4), machines.processors(5), machines.holding(18)
    (17, 22, 5)
    """

    slots: int
    reserved: int = 0

    def __post_init__(self) -> None:
        if self.slots < 1 or self.reserved < 0:
            raise BadTarget(
                f"{self.slots} slots per node with {self.reserved} reserved is not possible; "
                "write at least 1 slot, and 0 or more reserved"
            )

    def processors(self, nodes: int) -> int:
        """Return the processors that *nodes* machines have for the application."""
        return max(0, nodes * self.slots - self.reserved)

    def holding(self, processors: int) -> int:
        """Return the fewest machines that have *processors*."""
        return -(-(processors + self.reserved) // self.slots)

    def within(self, processors: int) -> int:
        """Return the most machines that have no more than *processors*."""
        return (processors + self.reserved) // self.slots
