"""How a running application is, as JSON can say it: what `top`, `ps` and Prometheus show."""

from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from sojourn.knowledge import Episode, Knowledge, measured_s
from sojourn.measure.observation import Observation
from sojourn.model.network import PERCENTILES
from sojourn.report.turns import News, Turn
from sojourn.service.engine import Health
from sojourn.service.supervisor import Running

__all__ = ["LatestDecisions", "status"]

_MOST_DECISIONS = 10


class LatestDecisions:
    """The last decisions that changed something, would have, or failed; and orders by hand."""

    def __init__(self) -> None:
        self._told: deque[dict[str, Any]] = deque(maxlen=_MOST_DECISIONS)
        self._news = News()

    def add(self, episode: Episode) -> bool:
        """Take in the next turn, and tell whether it is news: a wish is so only once."""
        decision = episode.decision
        if not self._news(Turn(episode=episode)):
            return False
        self._told.append(
            {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "at_s": decision.at_s,
                "kind": decision.kind,
                "before": dict(decision.before),
                "after": dict(decision.after),
                "reason": decision.reason,
                "carried_out": episode.cost is not None,
                "failure": episode.failure,
            }
        )
        return True

    def told(self) -> list[dict[str, Any]]:
        """Return them, the oldest first."""
        return list(self._told)


def status(running: Running, decisions: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    """Return how it is; what is not known is NaN or None."""
    orders, deciding, known = running.orders, running.deciding, running.knowledge
    seen = _last_usable(known)
    health = running.engine.health()
    last = known.episodes[-1] if known.episodes else None
    return {
        "name": running.topology.name,
        "policy": orders.said,
        "target": {"statistic": orders.target.statistic, "seconds": orders.target.seconds},
        "max_processors": orders.most,
        "deciding": deciding.mode,
        "why": deciding.why,
        "warning": running.warning,
        "every_s": running.every_s,
        "at_s": running.engine.now_s,
        "allocation": dict(running.engine.allocation),
        "measured": {
            "at_s": seen.at_s,
            "arrivals_per_s": seen.arrivals_per_s,
            "completed_per_s": seen.completed_per_s,
            "target_statistic_s": measured_s(seen, orders.target.statistic),
            "mean_s": seen.mean_s,
            "percentiles_s": {
                name: seen.percentile_s(ratio) for name, ratio in PERCENTILES.items()
            },
        },
        "operators": {
            name: _operator(running, name, seen, health) for name in running.topology.operator
        },
        "now": "" if last is None else last.decision.reason,
        "usable": last is None or last.observation.usable,
        "changes": running.changes,
        "decisions": list(decisions),
        "health": {
            "restarts": dict(health.restarts),
            "replayed": health.replayed,
            "retried": health.retried,
            "dead_letters": health.dead_letters,
            "failure": health.failure,
            "no_broker_s": health.no_broker_s,
            "notices": list(health.notices),
        },
        "inner_topics": {
            "records": health.held_records,
            "bytes": health.held_bytes,
        },
    }


def _last_usable(known: Knowledge) -> Observation:
    for episode in reversed(known.episodes):
        if episode.observation.usable:
            return episode.observation
    return Observation.unusable(0.0, 0.0, "nothing was seen yet")


def _operator(running: Running, name: str, seen: Observation, health: Health) -> dict[str, Any]:
    operator, measured = running.topology.operator[name], seen.operators.get(name)
    told: dict[str, Any] = {
        "wanted": running.engine.allocation.get(name),
        "running": health.running.get(name),
        "min_processors": operator.min_processors,
        "max_processors": operator.max_processors,
        "sends_to": list(operator.emits),
        "restarts": health.restarts.get(name, 0),
    }
    fields = (
        "backlog", "arrivals_per_s", "served_per_s", "service_s", "wait_s", "utilisation",
    )  # fmt: skip
    told |= {field: getattr(measured, field, None) for field in fields}
    if told["running"] is None and measured is not None:
        told["running"] = measured.running
    return told
