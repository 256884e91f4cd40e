"""The status of a running application, drawn for people."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from sojourn.report.text import clock, duration, processors_text

__all__ = ["status_view"]

_FULL = 0.95
_MOST_DECISIONS = 6


def status_view(status: Mapping[str, Any]) -> RenderableType:
    """Return what `top` draws; an application of an earlier version may not tell all of it."""
    lines: list[RenderableType] = [
        _line(
            f"{status['name']} · pid {status['pid']} · {clock(status['at_s'])} · "
            f"{sum(status['allocation'].values())} processors",
            "bold",
        ),
        _line(f"{status['policy']}; {_loop(status)}"),
        _latency(status),
        Text(),
        _operators(status["operators"]),
        Text(),
    ]
    if status.get("warning"):
        lines.append(_line(f"note   {status['warning']}", "yellow"))
    if status["now"]:
        lines.append(_line(f"now    {status['now']}"))
    lines += [_decision(decision) for decision in status["decisions"][-_MOST_DECISIONS:]]
    lines += [Text(), _health(status["health"])]
    if held := status.get("inner_topics"):
        lines.append(_inner_topics(held))
    notices = status["health"].get("notices", ())
    lines += [_line(notice, "yellow") for notice in notices]
    return Group(*lines)


def _loop(status: Mapping[str, Any]) -> str:
    if status["deciding"] == "active":
        return f"the loop decides every {status['every_s']:g} s"
    why = f": {status['why']}" if status["why"] else ""
    return f"the loop is {status['deciding']}{why}"


def _latency(status: Mapping[str, Any]) -> Text:
    measured, target = status["measured"], status["target"]
    now_s, bound_s = measured["target_statistic_s"], target["seconds"]
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{target['statistic']} ")
    late = now_s is not None and now_s > bound_s
    text.append("not known" if now_s is None else duration(now_s), "red" if late else "green")
    text.append(f" of {duration(bound_s)}")
    rate = measured["arrivals_per_s"]
    text.append("" if rate is None else f"   {rate:.4g} roots per s")
    return text


def _operators(operators: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column("operator", no_wrap=True)
    for name in ("processors", "per s", "busy", "service", "waits", "backlog", "restarts"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("sends to", no_wrap=True)
    for name, told in operators.items():
        wanted, running, busy = told["wanted"], told["running"], told["utilisation"]
        both = f"{wanted}" if running in (wanted, None) else f"{running} of {wanted}"
        table.add_row(
            Text(name),
            Text(both, style="" if running in (wanted, None) else "yellow"),
            _number(told["arrivals_per_s"]),
            Text()
            if busy is None
            else Text(f"{min(busy, 1.0):.0%}", style="red" if busy >= _FULL else ""),
            _time(told["service_s"]),
            _time(told["wait_s"]),
            Text("" if told["backlog"] is None else str(told["backlog"])),
            Text(str(told["restarts"] or "")),
            Text(", ".join(told["sends_to"])),
        )
    return table


def _decision(decision: Mapping[str, Any]) -> Text:
    done, at = decision["kind"], datetime.fromisoformat(decision["at"]).astimezone()
    if done == "hold" and not decision["failure"]:
        return _line(f"{at:%H:%M:%S}  told  {decision['reason']}")
    if done != "hold" and not decision["carried_out"]:
        done = f"{done} {'failed' if decision['failure'] else 'advised'}"
    failure = f": {decision['failure']}" if decision["failure"] else ""
    return _line(
        f"{at:%H:%M:%S}  {done:<4}  {processors_text(decision['before'])} -> "
        f"{processors_text(decision['after'])}  {decision['reason']}{failure}"
    )


def _health(health: Mapping[str, Any]) -> Text:
    restarts = sum(health["restarts"].values())
    said = (
        f"restarts {restarts}, records replayed {health['replayed']}, "
        f"tried again {health['retried']}, dead letters {health['dead_letters']}"
    )
    away_s = health.get("no_broker_s")
    failure = "" if away_s is None else f"; no broker answers since {clock(away_s)}"
    failure += f"; stopped: {health['failure']}" if health["failure"] else ""
    troubled = failure or restarts or health["dead_letters"]
    return _line(f"{said}{failure}", "yellow" if troubled else "")


def _inner_topics(held: Mapping[str, Any]) -> Text:
    size = "" if held["bytes"] is None else f", {decimal(held['bytes'])}"
    return _line(f"topics between operators hold {held['records']} records{size}")


def _line(text: str, style: str = "") -> Text:
    # an engine may say anything, and a terminal would obey it
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    return Text(shown, style=style, no_wrap=True, overflow="ellipsis")


def _number(value: float | None) -> Text:
    return Text("" if value is None else f"{value:.4g}")


def _time(seconds: float | None) -> Text:
    return Text("" if seconds is None else duration(seconds))
