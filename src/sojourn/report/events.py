"""The output of `sojourn run`: lines of text, live charts, or JSON."""

from collections.abc import Generator, Iterable, Sequence

import typer
from rich.console import Console

from sojourn.engine import KafkaAccess, health
from sojourn.knowledge import Episode
from sojourn.report.json.output import print_event
from sojourn.report.terminal.console import say
from sojourn.report.terminal.live import View
from sojourn.report.terminal.progress import Watch, lines, picture
from sojourn.report.terminal.runs import show_totals
from sojourn.report.text import bill_text, node_costs_text, objective_text
from sojourn.report.turns import Totals, turns
from sojourn.service.folders import Entry
from sojourn.service.status import objective_status
from sojourn.service.supervisor import Supervisor
from sojourn.text import escaped_lines, printable

# The time range of live charts.
_WINDOW_S = 600.0


class ForPeople:
    """Prints lines of text; if *live*, draws charts in the terminal."""

    def __init__(self, *, live: bool | None) -> None:
        self._console = Console()
        self._live = self._console.is_terminal if live is None else live
        self._view: View | None = None
        self._totals: Totals | None = None

    def starting(self, name: str, engine: str, begins_with: str) -> None:
        typer.echo(f"starting {name} on {engine} with {begins_with} …", err=True)

    def ready(
        self,
        entry: Entry,
        supervisor: Supervisor,
        kafka: KafkaAccess | None,
        notes: Sequence[str],
    ) -> None:
        # before anything is printed: the run may end before its first turn
        self._totals = Totals(supervisor.topology, supervisor.orders.target)
        say(f"{entry.name} · {supervisor.orders.said}", "bold")
        passive = "" if supervisor.mode.active else f"; {supervisor.mode.why}"
        at = f"on {supervisor.engine.name}" if kafka is None else f"Kafka at {kafka.servers}"
        waits_for = health(supervisor.engine).waits_for
        runs = f"starting ({waits_for})" if waits_for else "running"
        say(f"{runs}, pid {entry.pid}; {at}; state in {entry.state}{passive}")
        if kafka is not None:
            _say_kafka(kafka)
        for note in notes:
            say(f"note: {note}")
        say("Ctrl-C: finish the current batch, then exit. Twice: exit now; work is repeated.\n")

    def shown(self, passing: Iterable[Episode], supervisor: Supervisor) -> Generator[Episode]:
        target = supervisor.orders.target
        if self._totals is None:
            self._totals = Totals(supervisor.topology, target)
        with self._watch(supervisor) as show:
            for turn in self._totals.counting(turns(passing, target.statistic)):
                self._aim(supervisor)
                show(turn.episode)
                yield turn.episode

    def change(self, episode: Episode) -> None:
        """Print nothing, because `shown` prints changes."""

    def end(self, supervisor: Supervisor) -> None:
        say()
        if self._totals is not None:
            show_totals(self._totals)
        if (objective := objective_status(supervisor.knowledge.budget)) is not None:
            say(f"kept        {objective_text(objective)}")
        if costs := node_costs_text(health(supervisor.engine).node_costs):
            say(f"nodes       {costs}")
        if (bill := supervisor.bill) is not None:
            say(f"bill        {bill_text(bill)}")

    def progress(self, text: str) -> None:
        typer.echo(printable(text), err=True)

    def notice(self, text: str) -> None:
        if self._view is None:
            self.progress(text)

    def error(self, text: str) -> None:
        typer.echo(escaped_lines(text), err=True)

    def _watch(self, supervisor: Supervisor) -> Watch:
        if not self._live:
            return lines()
        self._view = View(
            supervisor.topology, supervisor.orders.target, _WINDOW_S, rolling=True
        )
        return picture(self._view, 0.0, self._console)

    def _aim(self, supervisor: Supervisor) -> None:
        """Update target and mode of the live view: commands can change both during the run."""
        if self._view is not None:
            self._view.aim_at(supervisor.orders.target)
            mode = supervisor.mode
            idle = [] if mode.active else [f"{mode.name}: {mode.why}"]
            told = supervisor.health()
            waits = [f"starting: {told.waits_for}"] if told.waits_for else []
            self._view.note = "; ".join([*waits, *told.notices, *idle])


class AsJson:
    """Prints one JSON object per line; its field `event` names the kind."""

    def __init__(self) -> None:
        self._begins_with = ""
        self._turns = 0

    def starting(self, name: str, engine: str, begins_with: str) -> None:  # noqa: ARG002 - as above
        self._begins_with = begins_with

    def ready(
        self,
        entry: Entry,
        supervisor: Supervisor,
        kafka: KafkaAccess | None,
        notes: Sequence[str],
    ) -> None:
        print_event(
            "ready",
            {
                "name": entry.name,
                "pid": entry.pid,
                "policy": supervisor.orders.said,
                "bootstrap_servers": None if kafka is None else kafka.servers,
                "client_properties": None if kafka is None else kafka.client_properties,
                "client_settings": None if kafka is None else kafka.client_settings,
                "sources": {} if kafka is None else dict(kafka.sources),
                "sinks": {} if kafka is None else dict(kafka.sinks),
                "state": entry.state,
                "logs": entry.logs,
                "allocation": dict(supervisor.engine.plan.allocation),
                "max_processors": supervisor.orders.most,
                "notes": list(notes),
                "begins_with": self._begins_with,
                "waits_for": health(supervisor.engine).waits_for,
            },
        )

    def shown(self, passing: Iterable[Episode], supervisor: Supervisor) -> Generator[Episode]:  # noqa: ARG002 - as above
        """Count the turns for the event `end`; changes are printed by `change`."""
        for episode in passing:
            self._turns += episode.looked
            yield episode

    def change(self, episode: Episode) -> None:
        decision = episode.decision
        held = "failure" if episode.failure else "note"
        print_event(
            "change" if decision.kind != "hold" else held,
            {
                "at_s": decision.at_s,
                "kind": decision.kind,
                "before": dict(decision.before.allocation),
                "after": dict(decision.after.allocation),
                "carried_out": episode.cost is not None,
                "reason": decision.reason,
                "failure": episode.failure,
            },
        )

    def end(self, supervisor: Supervisor) -> None:
        print_event(
            "end",
            {
                "turns": self._turns,
                "changes": supervisor.changes,
                "allocation": dict(supervisor.engine.plan.allocation),
                "objective": objective_status(supervisor.knowledge.budget),
                "node_costs": health(supervisor.engine).node_costs,
                "bill": supervisor.bill,
            },
        )

    def progress(self, text: str) -> None:
        print_event("progress", {"text": text})

    def notice(self, text: str) -> None:
        print_event("notice", {"text": text})

    def error(self, text: str) -> None:
        typer.echo(escaped_lines(text), err=True)


def _say_kafka(kafka: KafkaAccess) -> None:
    for kind, topics in (("sources", kafka.sources), ("sinks", kafka.sinks)):
        if topics:
            named = ", ".join(f"{name} (topic {topic})" for name, topic in topics.items())
            say(f"{kind}: {named}")
    if kafka.client_properties is not None:
        say(f"client properties for Kafka's tools: {kafka.client_properties}")
    if kafka.client_settings is not None:
        say(f"client settings for confluent-kafka: {kafka.client_settings}")
