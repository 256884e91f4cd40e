"""How the nodes of a cluster are: who runs there, and why some cannot be used."""

from collections.abc import Iterable, Mapping

from sojourn.engine import NodeHealth
from sojourn.host.report.reports import NodeIs
from sojourn.plan import Placement

__all__ = ["node_health", "node_notices", "node_order", "settled_nodes"]

_NOT_THERE = "it is not there; its agent is started again while its executor runs"


def node_order(name: str) -> tuple[int, str]:
    """Return what nodes are sorted by: the number of their executor.

    >>> sorted(["executor-10", "executor-2"], key=node_order)
    ['executor-2', 'executor-10']
    """
    return len(name), name


def node_health(
    there: Mapping[str, NodeIs],
    away: Mapping[str, NodeIs],
    failures: Mapping[str, str],
    placed: Placement,
    memory: Mapping[str, Mapping[str, int]],
) -> tuple[NodeHealth, ...]:
    """Return the health of nodes: those that are *there*, and those that should be.

    These are of executors that still run: the node was there and is *away*, or *failures* tell
    why its agent did not start. Processors are *placed* on nodes, and use so much *memory*
    there, in bytes, by operator.
    """
    known = {**away, **there}
    found = []
    for name in sorted({*known, *failures}, key=node_order):
        told, usable = known.get(name), name in there
        found.append(
            NodeHealth(
                name=name,
                cores=None if told is None else told.cores,
                processors={o: on[name] for o, on in placed.items() if usable and on.get(name)},
                memory_bytes=sum(by.get(name, 0) for by in memory.values()) if usable else 0,
                machine="" if told is None else told.machine,
                logs="" if told is None else told.logs,
                reason="" if usable else failures.get(name, _NOT_THERE),
            )
        )
    return tuple(found)


def settled_nodes(nodes: Iterable[str], wanted: Placement, placed: Placement) -> list[str]:
    """Return those of *nodes* that have processors, and all that are *wanted* there.

    >>> wanted = {"split": {"a": 1, "b": 1}, "count": {"b": 2}}
    >>> settled_nodes(["a", "b", "c"], wanted, {"split": {"a": 1, "b": 1}, "count": {"b": 1}})
    ['a']
    """
    return [
        node
        for node in nodes
        if any(on.get(node) for on in placed.values())
        and all(placed[o].get(node, 0) >= on.get(node, 0) for o, on in wanted.items())
    ]


def node_notices(nodes: Iterable[NodeHealth]) -> list[str]:
    """Return what users are told of nodes that cannot be used.

    >>> node_notices([NodeHealth(name="executor-2", reason="its agent did not start: no")])
    ['node executor-2: its agent did not start: no']
    """
    return [f"node {node.name}: {node.reason}" for node in nodes if node.reason]
