"""What the loop drives: something that runs a topology and can be changed while it runs."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from sojourn.measure.report import Pull
from sojourn.topology import Topology

__all__ = ["Cost", "Engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a change of the allocation cost: how long operators paused, what came again."""

    pause_s: float = 0.0
    replayed: int = 0
    changed: Mapping[str, tuple[int, int]]
    """Processors before and after, of the operators that changed."""


class Engine(Protocol):
    """A running application: started, looked at, changed, stopped.

    A context manager: leaving it stops the application, whatever happened. Only `EngineError`
    and errors about what was asked get out of it. Its clock starts at 0.
    """

    @property
    def now_s(self) -> float:
        """The engine's clock."""
        ...

    @property
    def allocation(self) -> Mapping[str, int]:
        """Processors that operators should have: what was started with, or applied last."""
        ...

    def start(self, topology: Topology, allocation: Mapping[str, int]) -> None:
        """Begin to run *topology*. Raise `EngineError` if it runs already."""
        ...

    def observe(self, until_s: float) -> Pull:
        """Return what was counted since the last look, at *until_s* on the engine's clock.

        It waits until then, and not longer: what is late is left for the next look.
        """
        ...

    def apply(self, allocation: Mapping[str, int]) -> Cost:
        """Change the running application, and return what it cost.

        Applying the same twice is applying it once. No record may be lost.
        """
        ...

    def stop(self) -> None:
        """End the application. Stopping what does not run does nothing."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...
