"""The events of a run, as `sojourn run` tells them: in lines, in a picture, or as JSON."""

from collections.abc import Generator, Iterable, Sequence

import typer
from rich.console import Console

from sojourn.engine import KafkaAccess, health
from sojourn.knowledge import Episode
from sojourn.report.json.output import print_event
from sojourn.report.tally import Tally
from sojourn.report.terminal.console import say, wide_console
from sojourn.report.terminal.history import show_tally
from sojourn.report.terminal.live import View
from sojourn.report.terminal.watch import Watch, lines, picture
from sojourn.report.text import printable
from sojourn.report.turns import turns
from sojourn.service.entry import Entry
from sojourn.service.supervisor import Supervisor

__all__ = ["AsJson", "ForPeople"]

# What a live picture shows of a run without an end.
_WINDOW_S = 600.0


class ForPeople:
    """Says what happens in lines, and draws turns in a terminal if *live*."""

    def __init__(self, *, live: bool | None) -> None:
        self._console = Console()
        self._live = self._console.is_terminal if live is None else live
        self._view: View | None = None
        self._tally: Tally | None = None

    def starting(self, name: str, engine: str, begins_with: str) -> None:
        """Say that it is started, and with what: Spark takes its time."""
        typer.echo(f"starting {name} on {engine} with {begins_with} …", err=True)

    def ready(
        self,
        entry: Entry,
        supervisor: Supervisor,
        kafka: KafkaAccess | None,
        notes: Sequence[str],
    ) -> None:
        """Say that it runs, and how Kafka's tools reach a broker of its own."""
        self._say(f"{entry.name} · {supervisor.orders.said}", "bold")
        passive = "" if supervisor.mode.active else f"; {supervisor.mode.why}"
        at = f"on {supervisor.engine.name}" if kafka is None else f"Kafka at {kafka.servers}"
        self._say(f"runs, pid {entry.pid}; {at}; state in {entry.state}{passive}")
        if kafka is not None and kafka.client_properties is not None:
            self._say(f"client properties for Kafka's tools: {kafka.client_properties}")
        for note in notes:
            self._say(f"note: {note}")
        self._say("Ctrl-C ends it when all that was begun is done, twice at once\n")

    def shown(self, passing: Iterable[Episode], supervisor: Supervisor) -> Generator[Episode]:
        """Yield each turn, having printed or drawn it."""
        target = supervisor.orders.target
        self._tally = Tally(supervisor.topology, target)
        with self._watch(supervisor) as show:
            for turn in self._tally.counting(turns(passing, target.statistic)):
                self._aim(supervisor)
                show(turn.episode)
                yield turn.episode

    def change(self, episode: Episode) -> None:
        """Say nothing: it was shown."""

    def end(self, supervisor: Supervisor) -> None:  # noqa: ARG002 - as below
        """Say what it came to."""
        console = wide_console()
        console.print()
        if self._tally is not None:
            show_tally(console, self._tally)

    def progress(self, text: str) -> None:
        """Say how far the start, or the end, has come."""
        typer.echo(printable(text), err=True)

    def notice(self, text: str) -> None:
        """Say what somebody should know, where no picture shows it."""
        if self._view is None:
            self.progress(text)

    def error(self, text: str) -> None:
        """Say what failed."""
        typer.echo(text, err=True)

    def _watch(self, supervisor: Supervisor) -> Watch:
        if not self._live:
            return lines()
        self._view = View(
            supervisor.topology, supervisor.orders.target, _WINDOW_S, rolling=True
        )
        return picture(self._view, 0.0, self._console)

    def _aim(self, supervisor: Supervisor) -> None:
        """Draw from now on what may have been changed by hand."""
        if self._view is not None:
            self._view.aim_at(supervisor.orders.target)
            mode = supervisor.mode
            idle = [] if mode.active else [f"{mode.name}: {mode.why}"]
            self._view.note = "; ".join([*health(supervisor.engine).notices, *idle])

    def _say(self, text: str, style: str | None = None) -> None:
        say(self._console, text, style)


class AsJson:
    """Says what happens in lines of JSON, each with its *event*."""

    def __init__(self) -> None:
        self._begins_with = ""
        self._turns = 0

    def starting(self, name: str, engine: str, begins_with: str) -> None:  # noqa: ARG002 - as above
        """Say nothing yet."""
        self._begins_with = begins_with

    def ready(
        self,
        entry: Entry,
        supervisor: Supervisor,
        kafka: KafkaAccess | None,
        notes: Sequence[str],
    ) -> None:
        """Say that it runs."""
        print_event(
            "ready",
            {
                "name": entry.name,
                "pid": entry.pid,
                "policy": supervisor.orders.said,
                "bootstrap_servers": None if kafka is None else kafka.servers,
                "client_properties": None if kafka is None else kafka.client_properties,
                "state": entry.state,
                "logs": entry.logs,
                "allocation": dict(supervisor.engine.plan.allocation),
                "max_processors": supervisor.orders.most,
                "notes": list(notes),
                "begins_with": self._begins_with,
            },
        )

    def shown(self, passing: Iterable[Episode], supervisor: Supervisor) -> Generator[Episode]:  # noqa: ARG002 - as above
        """Yield each turn, having counted it."""
        for episode in passing:
            self._turns += episode.looked
            yield episode

    def change(self, episode: Episode) -> None:
        """Say what was changed, or would have been, and what the loop was told."""
        decision = episode.decision
        held = "failure" if episode.failure else "told"
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
        """Say what it came to."""
        allocation, changes = dict(supervisor.engine.plan.allocation), supervisor.changes
        print_event("end", {"turns": self._turns, "changes": changes, "allocation": allocation})

    def progress(self, text: str) -> None:
        """Say how far the start, or the end, has come."""
        print_event("progress", {"text": text})

    def notice(self, text: str) -> None:
        """Say what somebody should know."""
        print_event("notice", {"text": text})

    def error(self, text: str) -> None:
        """Say what failed, beside the events."""
        typer.echo(text, err=True)
