"""The status of a running application on the terminal."""

from collections.abc import Mapping
from datetime import datetime

from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from sojourn.engine import Health
from sojourn.report.terminal.console import line, table
from sojourn.report.text import clock, duration, processors_text
from sojourn.service.status import DecisionStatus, OperatorStatus, Status

__all__ = ["status_view"]

_FULL = 0.95
_MOST_DECISIONS = 6


def status_view(status: Status, pid: int) -> RenderableType:
    """Return what `top` shows; *pid* is the process of the application."""
    head = f"{status.name} · pid {pid} · {clock(status.at_s)} · {status.processors} processors"
    lines: list[RenderableType] = [
        line(head, "bold"),
        line(f"{status.policy}; {_loop(status)}"),
        _latency(status),
        Text(),
        _operators(status.operators),
        Text(),
    ]
    if status.warning:
        lines.append(line(f"note   {status.warning}", "yellow"))
    if status.now:
        lines.append(line(f"now    {status.now}"))
    lines += [_decision(decision) for decision in status.decisions[-_MOST_DECISIONS:]]
    lines += [Text(), _health(status.health), *_inner_topics(status.health)]
    lines += [line(notice, "yellow") for notice in status.health.notices]
    return Group(*lines)


def _loop(status: Status) -> str:
    if status.deciding == "active":
        return f"the loop decides every {status.every_s:g} s"
    why = f": {status.why}" if status.why else ""
    return f"the loop is {status.deciding}{why}"


def _latency(status: Status) -> Text:
    target, now_s = status.target, status.measured.target_statistic_s
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{target.statistic} ")
    late = now_s is not None and now_s > target.seconds
    text.append("unknown" if now_s is None else duration(now_s), "red" if late else "green")
    text.append(f" of {duration(target.seconds)}")
    rate = status.measured.arrivals_per_s
    text.append("" if rate is None else f"   {rate:.4g} roots per s")
    return text


def _operators(operators: Mapping[str, OperatorStatus]) -> Table:
    right = ("processors", "per s", "busy", "service", "waits", "backlog", "restarts")
    made = table("operator", *right, "sends to", right=right)
    for name, operator in operators.items():
        wanted, running, busy = operator.wanted, operator.running, operator.utilisation
        both = f"{wanted}" if running in (wanted, None) else f"{running} of {wanted}"
        made.add_row(
            Text(name),
            Text(both, style="" if running in (wanted, None) else "yellow"),
            _number(operator.arrivals_per_s),
            Text()
            if busy is None
            else Text(f"{min(busy, 1.0):.0%}", style="red" if busy >= _FULL else ""),
            _time(operator.service_s),
            _time(operator.wait_s),
            Text("" if operator.backlog is None else str(operator.backlog)),
            Text(str(operator.restarts or "")),
            Text(", ".join(operator.sends_to)),
        )
    return made


def _decision(decision: DecisionStatus) -> Text:
    done, at = decision.kind, datetime.fromisoformat(decision.at).astimezone()
    if done == "hold" and not decision.failure:
        return line(f"{at:%H:%M:%S}  told  {decision.reason}")
    if done != "hold" and not decision.carried_out:
        done = f"{done} {'failed' if decision.failure else 'advised'}"
    failure = f": {decision.failure}" if decision.failure else ""
    return line(
        f"{at:%H:%M:%S}  {done:<4}  {processors_text(decision.before)} -> "
        f"{processors_text(decision.after)}  {decision.reason}{failure}"
    )


def _health(health: Health) -> Text:
    restarts = sum(health.restarts.values())
    said = (
        f"restarts {restarts}, records replayed {health.replayed}, "
        f"retried {health.retried}, dead letters {health.dead_letters}"
    )
    away_s = health.no_broker_s
    failure = "" if away_s is None else f"; no broker has answered for {clock(away_s)}"
    failure += f"; stopped: {health.failure}" if health.failure else ""
    troubled = failure or restarts or health.dead_letters
    return line(f"{said}{failure}", "yellow" if troubled else "")


def _inner_topics(health: Health) -> list[Text]:
    if health.held_records is None:
        return []
    size = "" if health.held_bytes is None else f", {decimal(health.held_bytes)}"
    return [line(f"topics between operators hold {health.held_records} records{size}")]


def _number(value: float | None) -> Text:
    return Text("" if value is None else f"{value:.4g}")


def _time(seconds: float | None) -> Text:
    return Text("" if seconds is None else duration(seconds))
