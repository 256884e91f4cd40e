"""Warnings about nodes that can be used: memory that runs out, wrong clocks."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sojourn.engine import NodeHealth

__all__ = ["NodeWarnings"]

# Parts of the memory limit: a warning begins above the first and ends below the second, so
# that it does not flicker.
_FULL, _RECOVERED = 0.9, 0.85
# As for clocks of producers: producers hold records back for times of this order anyway.
_CLOCK_S, _CLOCK_AGAIN_S = 0.25, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Warning:
    """A possible warning, with hysteresis."""

    begins: bool
    """Whether the warning begins now."""
    lasts: bool
    """Whether a warning that has begun before continues."""
    text: str


class NodeWarnings:
    """Warnings with the figures of when they began, until their node has recovered.

    >>> warnings = NodeWarnings()
    >>> def warned(used_gb):
    ...     node = NodeHealth(
    ...         name="executor-1",
    ...         memory_used_bytes=used_gb * 10**9,
    ...         memory_limit_bytes=100 * 10**9,
    ...     )
    ...     return warnings.added([node])[0].warnings
    >>> [len(warned(used_gb)) for used_gb in (89, 91, 95, 86, 84, 89)]
    [0, 1, 1, 1, 0, 0]
    >>> warned(92)[0].partition(":")[0]
    '92.00 GB of its 100.00 GB of memory are in use'
    """

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], str] = {}

    def added(self, nodes: Iterable[NodeHealth]) -> tuple[NodeHealth, ...]:
        """Return *nodes* with their warnings."""
        told: dict[tuple[str, str], str] = {}
        warned = []
        for node in nodes:
            texts = []
            for kind, warning in (("memory", _memory(node)), ("clock", _clock(node))):
                before = self._told.get((node.name, kind), "")
                if warning is not None and (warning.begins or (before and warning.lasts)):
                    told[node.name, kind] = text = before or warning.text
                    texts.append(text)
            warned.append(replace(node, warnings=tuple(texts)))
        self._told = told  # a new mapping, because other threads may read the old one
        return tuple(warned)


def _memory(node: NodeHealth) -> _Warning | None:
    used, limit = node.memory_used_bytes, node.memory_limit_bytes
    if used is None or not limit:
        return None
    return _Warning(
        begins=used > _FULL * limit,
        lasts=used > _RECOVERED * limit,
        text=(
            f"{_gb(used)} of its {_gb(limit)} of memory are in use: beyond that the "
            "system kills processes; give its container more "
            "(--conf spark.executor.memoryOverhead=…) or run fewer processors on it "
            "(--processors-per-node with more nodes, or --max-processors)"
        ),
    )


def _clock(node: NodeHealth) -> _Warning | None:
    if node.clock_offset_s is None or node.round_trip_s is None:
        return None
    # the offset is known to half a round trip: only the rest is surely the clock's
    off_s = abs(node.clock_offset_s) - node.round_trip_s / 2
    way = "ahead of" if node.clock_offset_s > 0 else "behind"
    return _Warning(
        begins=off_s > _CLOCK_S,
        lasts=off_s > _CLOCK_AGAIN_S,
        text=(
            f"its clock is {abs(node.clock_offset_s):.1f} s {way} that of the driver, so wait "
            "times after native operators are wrong by as much; synchronise the clocks, for "
            "example by NTP"
        ),
    )


def _gb(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.2f} GB"
