"""Running applications, and the status of one, on the terminal."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import Any

import typer
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sojourn.engine import Health, NodeHealth, PartHealth
from sojourn.errors import ApplicationStarting, EngineError
from sojourn.report.json.output import picked
from sojourn.report.terminal.console import (
    TABLE_WIDTH,
    FittedTable,
    busy_text,
    line,
    paragraph,
    table,
    wide_console,
)
from sojourn.report.terminal.nodes import nodes_view, traffic_view
from sojourn.report.text import (
    bill_text,
    clock,
    duration,
    node_costs_text,
    number,
    objective_text,
    processors_text,
)
from sojourn.service.control import ask_status
from sojourn.service.folders import Entry
from sojourn.service.status import DecisionStatus, OperatorStatus, Status
from sojourn.text import escaped

_EVERY_S = 1.0
_MOST_DECISIONS = 6
# The fraction of one processor's time from which a key is shown, and shown in yellow.
_NOTABLE, _HOT = 0.5, 0.9
# Columns of `ps` whose text may be long, and columns that are left out if they are empty.
_WRAPPED = ("policy", "state", "warnings")
_OPTIONAL = ("nodes", "warnings")
# Columns of `top` that are dropped on narrow terminals, the least important first.
_DROPPED = ("sends to", "restarts", "longest", "service", "waits")


def application_json(folder: Path, entry: Entry) -> dict[str, Any]:
    """Request the status of an application, and return the JSON of `ps` for it."""
    status: Status | None = None
    silent, waits_for = "", ""
    try:
        status = ask_status(folder, entry)
        waits_for = status.health.waits_for
    except ApplicationStarting as error:
        waits_for = error.stage
    except EngineError as error:
        silent = f"does not answer: {error}"
    return {
        **picked(entry, "name", "pid", "address", "started_at", "state"),
        "status": "silent" if silent else "starting" if waits_for else "running",
        "waits_for": waits_for,
        "allocation": {} if status is None else status.allocation,
        "deciding": silent if status is None else status.deciding,
        "policy": "" if status is None else status.policy,
        "notices": [] if status is None else _notices(status),
        "nodes": () if status is None else status.health.nodes,
        "node_costs": None if status is None else status.health.node_costs,
        "bill": None if status is None else status.bill,
    }


def applications_view(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of `ps`; there must be at least one row."""
    cells = [_cells(row) for row in rows]
    heads = [
        head
        for head in _cells(rows[0])
        if head not in _OPTIONAL or any(each[head] for each in cells)
    ]
    made = table(*heads, wrapped=_WRAPPED)
    for each in cells:
        made.add_row(*(Text(escaped(each[head])) for head in heads))
    return made


def cluster_view(row: Mapping[str, Any]) -> RenderableType:
    nodes: Sequence[NodeHealth] = row["nodes"]
    if not nodes:
        return line(f"{row['name']} has no nodes: it runs on this machine")
    lines: list[RenderableType] = [Text(), line(row["name"], "bold"), *nodes_view(nodes)]
    if (traffic := traffic_view(nodes)) is not None:
        lines.append(traffic)
    return Group(*lines)


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "application": row["name"],
        "pid": str(row["pid"]),
        "since": row["started_at"],
        "status": row["status"],
        "processors": processors_text(row["allocation"]),
        "nodes": str(len(row["nodes"]) or ""),
        "loop": row["deciding"],
        "policy": row["policy"],
        "state": row["state"],
        "warnings": "; ".join(filter(None, [row["waits_for"], *row["notices"]])),
    }


def watch_status(folder: Path, entry: Entry, *, once: bool) -> None:
    """Show a running application *once*, or every second until it ends or Ctrl-C.

    Without a terminal it is shown once.
    """

    def view() -> RenderableType:
        try:
            return status_view(ask_status(folder, entry), entry.pid)
        except ApplicationStarting as error:
            return line(f"{entry.name} · pid {entry.pid} · {_runs(error.stage)}", "bold")

    console = wide_console(TABLE_WIDTH)
    if once or not console.is_terminal:
        console.print(view())
        return
    with (
        suppress(KeyboardInterrupt),
        Live(view(), console=console, auto_refresh=False, screen=False) as live,
    ):
        while True:
            sleep(_EVERY_S)
            try:
                now = view()
            except EngineError:
                if entry.answers():
                    raise
                break
            live.update(now, refresh=True)
    if not entry.answers():
        typer.echo(f"{entry.name} has ended")


def status_view(status: Status, pid: int) -> RenderableType:
    """Return the view of `top`; *pid* is the process of the application."""
    head = f"{status.name} · pid {pid} · {clock(status.at_s)} · {status.processors} processors"
    waits_for = status.health.waits_for
    lines: list[RenderableType] = [
        paragraph(head, "bold"),
        *([paragraph(_runs(waits_for), "yellow")] if waits_for else []),
        paragraph(f"{status.policy}; {_loop(status)}"),
        _latency(status),
        Text(),
        _operators(status.operators),
        Text(),
        *nodes_view(status.health.nodes),
    ]
    if status.objective is not None:
        lines.append(paragraph(f"kept   {objective_text(status.objective)}"))
    if status.warning:
        lines.append(paragraph(f"note   {status.warning}", "yellow"))
    if status.now:
        lines.append(paragraph(f"now    {status.now}"))
    lines += [_decision(decision) for decision in status.decisions[-_MOST_DECISIONS:]]
    lines += [Text(), *_keys(status.operators), _health(status.health), *_parts(status.health)]
    lines += _inner_topics(status.health)
    if costs := node_costs_text(status.health.node_costs):
        lines.append(paragraph(f"nodes  {costs}"))
    if status.bill is not None:
        lines.append(paragraph(f"bill   {bill_text(status.bill)}"))
    lines += [paragraph(notice, "yellow") for notice in status.health.notices]
    return Group(*lines)


def _runs(waits_for: str) -> str:
    return f"starting: {waits_for}" if waits_for else "running"


def _loop(status: Status) -> str:
    if status.deciding == "active":
        return f"the loop decides every {status.every_s:g} s"
    why = f": {status.why}" if status.why else ""
    return f"the loop is {status.deciding}{why}"


def _latency(status: Status) -> Text:
    target, now_s = status.target, status.measured.target_statistic_s
    text = Text()
    text.append(f"{target.statistic} ")
    late = now_s is not None and now_s > target.seconds
    text.append("unknown" if now_s is None else duration(now_s), "red" if late else "green")
    text.append(f" of {duration(target.seconds)}")
    rate = status.measured.arrivals_per_s
    text.append("" if rate is None else f"   {rate:.4g} roots per s")
    return text


def _operators(operators: Mapping[str, OperatorStatus]) -> FittedTable:
    rows = [_operator(name, operator) for name, operator in operators.items()]
    wrapped = ("operator", "sends to")
    return FittedTable(
        rows=rows, right=rows[0].keys() - set(wrapped), wrapped=wrapped, optional=_DROPPED
    )


def _operator(name: str, operator: OperatorStatus) -> dict[str, Text]:
    wanted, running = operator.wanted, operator.running
    both = f"{wanted}" if running in (wanted, None) else f"{running} of {wanted}"
    return {
        "operator": Text(name),
        "processors": Text(both, style="" if running in (wanted, None) else "yellow"),
        "per s": _text(operator.arrivals_per_s, number),
        "busy": busy_text(operator.utilisation),
        "service": _text(operator.service_s, duration),
        "longest": _text(operator.longest_service_s, duration),
        "waits": _text(operator.wait_s, duration),
        "backlog": _text(operator.backlog, str),
        "restarts": Text(str(operator.restarts or "")),
        "sends to": Text(", ".join(operator.sends_to)),
    }


def _keys(operators: Mapping[str, OperatorStatus]) -> list[Text]:
    """Return a line for each operator whose hottest key takes much of one processor."""
    return [
        paragraph(
            f"key    {escaped(operator.key or 'one key')} keeps {operator.key_busy:.0%} of one "
            f"processor of {name} busy; more processors do not help it",
            "yellow" if operator.key_busy >= _HOT else "",
        )
        for name, operator in operators.items()
        if operator.key_busy is not None and operator.key_busy >= _NOTABLE
    ]


def _decision(decision: DecisionStatus) -> Text:
    done, at = decision.kind, datetime.fromisoformat(decision.at).astimezone()
    if done == "hold" and not decision.failure:
        return paragraph(f"{at:%H:%M:%S}  note  {decision.reason}")
    if done != "hold" and not decision.carried_out:
        done = f"{done} {'failed' if decision.failure else 'advised'}"
    failure = f": {decision.failure}" if decision.failure else ""
    return paragraph(
        f"{at:%H:%M:%S}  {done:<4}  {processors_text(decision.before)} -> "
        f"{processors_text(decision.after)}  {decision.reason}{failure}"
    )


def _health(health: Health) -> Text:
    restarts = sum(health.restarts.values())
    said = (
        f"restarts {restarts}, records replayed {health.replayed}, "
        f"retried {health.retried}, dead letters {health.dead_letters}"
    )
    said += f", nulls skipped {health.nulls}" if health.nulls else ""
    away_s = health.no_broker_s
    failure = "" if away_s is None else f"; no broker has answered for {clock(away_s)}"
    failure += f"; stopped: {health.failure}" if health.failure else ""
    troubled = failure or restarts or health.dead_letters
    return paragraph(f"{said}{failure}", "yellow" if troubled else "")


def _parts(health: Health) -> list[Text]:
    return [
        paragraph(f"part   {_named(part)}: {part.open_records} records open")
        for part in health.parts
    ]


def _named(part: PartHealth) -> str:
    within = f" (with {', '.join(part.projections)})" if part.projections else ""
    return f"{', '.join(part.operators)}{within}"


def _inner_topics(health: Health) -> list[Text]:
    topics = health.inner_topics
    if topics.records is None:
        return []
    size = "" if topics.bytes is None else f", {decimal(topics.bytes)}"
    return [paragraph(f"topics between operators hold {topics.records} records{size}")]


def _text(value: float | None, said: Callable[[float], str]) -> Text:
    return Text("" if value is None else said(value))


def _notices(status: Status) -> list[str]:
    """Return everything that needs the attention of a user."""
    health, away_s = status.health, status.health.no_broker_s
    away = "" if away_s is None else f"no broker has answered for {clock(away_s)}"
    known = (health.failure, away, *health.notices, status.warning)
    return [notice for notice in known if notice]
