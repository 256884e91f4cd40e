"""The nodes of a cluster on the terminal, and their traffic with the driver."""

from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from sojourn.engine import NodeHealth
from sojourn.report.terminal.console import FittedTable, table
from sojourn.report.text import duration, number

# The name of the machine that runs the hosts, and so has the queues.
_DRIVER = "driver"


def nodes_view(nodes: Sequence[NodeHealth]) -> list[RenderableType]:
    """Return the tables of the nodes of a cluster; an empty list on one machine.

    There are two tables, because one would be wider than most terminals.
    """
    if not nodes:
        return []
    tables: list[RenderableType] = [_processors(nodes), Text()]
    if any(node.round_trip_s is not None for node in nodes):
        tables += [_measures(nodes), Text()]
    return tables


def _processors(nodes: Sequence[NodeHealth]) -> Table:
    right = ("cores", "processors", "memory")
    made = table("node", *right, "operators", right=right, wrapped=["node", "operators"])
    for node in nodes:
        runs = ", ".join(f"{name} {k}" for name, k in node.processors.items())
        made.add_row(
            _name(node),
            Text(_cores(node)),
            Text(str(sum(node.processors.values()))),
            Text(_size(node.memory_bytes)),
            Text("cannot be used" if node.reason else runs),
        )
    return made


def _measures(nodes: Sequence[NodeHealth]) -> FittedTable:
    rows = [
        {
            "node": _name(node),
            "memory in use": Text(_used(node)),
            "round trip": Text("" if (s := node.round_trip_s) is None else duration(s)),
            "clock": Text(_offset(node)),
            "in per s": Text(_size(round(node.received_bytes_per_s))),
            "out per s": Text(_size(round(node.sent_bytes_per_s))),
        }
        for node in nodes
        if not node.reason
    ]
    return FittedTable(
        rows=rows,
        right=rows[0].keys() - {"node"},
        wrapped=["node"],
        optional=("clock", "out per s", "in per s"),
    )


def _name(node: NodeHealth) -> Text:
    return Text(node.name, style="yellow" if node.reason or node.warnings else "")


def traffic(nodes: Iterable[NodeHealth]) -> Iterator[tuple[str, str, str, int]]:
    """Yield sender, receiver, stream and bytes of what the driver and *nodes* have sent."""
    for node in nodes:
        for stream, size_bytes in node.received_bytes.items():
            yield _DRIVER, node.name, stream, size_bytes
        for stream, size_bytes in node.sent_bytes.items():
            yield node.name, _DRIVER, stream, size_bytes


def traffic_view(nodes: Sequence[NodeHealth]) -> Table | None:
    """Return the table of bytes by sender, receiver and stream; None without traffic."""
    made = table("from", "to", "stream", "bytes", right=["bytes"])
    for sender, receiver, stream, size_bytes in traffic(nodes):
        cells = (sender, receiver, stream or "(no record)", decimal(size_bytes))
        made.add_row(*map(Text, cells))
    return made if made.rows else None


def _cores(node: NodeHealth) -> str:
    """Return the busy cores of a node, of all that it may use."""
    if node.cores is None:
        return ""
    busy = "" if node.busy_cores is None else f"{number(node.busy_cores)} of "
    return f"{busy}{number(node.cores)}"


def _size(size_bytes: int) -> str:
    return decimal(size_bytes) if size_bytes else ""


def _used(node: NodeHealth) -> str:
    """Return the memory in use on the node by all processes, and its limit."""
    used, limit = node.memory_used_bytes, node.memory_limit_bytes
    return "" if used is None or not limit else f"{used / limit:.0%} of {decimal(limit)}"


def _offset(node: NodeHealth) -> str:
    """Return the clock offset of the node; ±0 if it is within the measurement error.

    The error is at most half of the round-trip time.
    """
    offset_s, round_trip_s = node.clock_offset_s, node.round_trip_s
    if offset_s is None or round_trip_s is None:
        return ""
    if abs(offset_s) <= round_trip_s / 2:
        return "±0"
    return f"{'+' if offset_s > 0 else '-'}{duration(abs(offset_s))}"
