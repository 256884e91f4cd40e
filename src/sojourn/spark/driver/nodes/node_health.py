"""The health of a cluster's nodes: their processors and memory, and why some are unusable."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sojourn.decide.plan import Placement
from sojourn.engine import NodeHealth
from sojourn.measure.report import NodeReport
from sojourn.spark.wire.controller import NodeIs
from sojourn.spark.wire.counters import NodeState

_NOT_THERE = (
    "the connection to its agent is lost; the agent is restarted while its executor runs"
)
# Parts of the memory limit: a warning begins above the first and ends below the second, so
# that it does not flicker.
_FULL, _RECOVERED = 0.9, 0.85
# As for clocks of producers: producers hold records back for times of this order anyway.
_CLOCK_S, _CLOCK_AGAIN_S = 0.25, 0.2


def node_order(name: str) -> tuple[int, str]:
    """Return the sort key of a node: the number of its executor.

    >>> sorted(["executor-10", "executor-2"], key=node_order)
    ['executor-2', 'executor-10']
    """
    return len(name), name


def node_health(  # noqa: PLR0913 - everything that is known of nodes
    there: Mapping[str, NodeIs],
    away: Mapping[str, NodeIs],
    failures: Mapping[str, str],
    placed: Placement,
    memory: Mapping[str, Mapping[str, int]],
    *,
    hosts: Sequence[Mapping[str, NodeState]],
    cores: Mapping[str, NodeReport],
) -> tuple[NodeHealth, ...]:
    """Return the health of nodes: those that are *there*, and those that should be.

    The latter have registered executors: either hosts had a connection and the node is *away*,
    or *failures* has the reason why its agent did not start. Processors are *placed* on nodes
    and use *memory* there, in bytes; both are by operator and node. *hosts* are the
    measurements of each host, *cores* the busy cores at the last look of the loop.
    """
    known = {**away, **there}
    found = []
    for name in sorted({*known, *failures}, key=node_order):
        told, usable = known.get(name), name in there
        node = NodeHealth(
            name=name,
            cores=None if told is None else told.cores,
            processors={o: on[name] for o, on in placed.items() if usable and on.get(name)},
            memory_bytes=sum(by.get(name, 0) for by in memory.values()) if usable else 0,
            machine="" if told is None else told.machine,
            logs="" if told is None else told.logs,
            reason="" if usable else failures.get(name, _NOT_THERE),
        )
        states = [host[name] for host in hosts if name in host]
        found.append(_measured(node, cores.get(name), states) if usable else node)
    return tuple(found)


def _measured(
    node: NodeHealth, report: NodeReport | None, states: Sequence[NodeState]
) -> NodeHealth:
    """Return *node* with the *states* that hosts have measured.

    Each host has a connection of its own to a node: bytes are added up, and the clock offset
    is that of the shortest round trip. The memory in use is that of the whole node, the same
    for all hosts.
    """
    if report is not None:
        node = replace(node, cores=report.cores, busy_cores=report.busy_cores)
    used = [each.used_bytes for each in states if each.used_bytes is not None]
    limits = [each.limit_bytes for each in states if each.limit_bytes is not None]
    clocks = [
        (each.round_trip_s, each.offset_s) for each in states if each.round_trip_s is not None
    ]
    round_trip_s, offset_s = min(clocks, default=(None, None))
    return replace(
        node,
        memory_used_bytes=max(used, default=None),
        memory_limit_bytes=min(limits, default=None),
        round_trip_s=round_trip_s,
        clock_offset_s=offset_s,
        received_bytes=_added(each.to for each in states),
        sent_bytes=_added(each.back for each in states),
        received_bytes_per_s=sum(each.to_per_s for each in states),
        sent_bytes_per_s=sum(each.back_per_s for each in states),
        kafka=next((each.kafka for each in states if each.kafka), ""),
    )


def _added(each: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total = Counter[str]()
    for by_stream in each:
        total.update(by_stream)
    return dict(total)


def node_notices(nodes: Iterable[NodeHealth], refused: str = "") -> list[str]:
    """Return notices for users: why nodes cannot be used, and warnings about others.

    *refused* is the reason why the cluster refused to add or remove a node.

    >>> node_notices([NodeHealth(name="executor-2", reason="its agent did not start: no")])
    ['node executor-2: its agent did not start: no']
    """
    told = [
        f"node {node.name}: {text}"
        for node in nodes
        for text in (node.reason, node.kafka, *node.warnings)
        if text
    ]
    return [*told, f"nodes: {refused}; the request is repeated"] if refused else told


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
