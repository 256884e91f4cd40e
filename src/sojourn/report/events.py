"""The events of a run, as `sojourn run` tells them: in lines, in a picture, or as JSON."""

from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console

from sojourn.knowledge import Episode
from sojourn.report.json.output import print_event
from sojourn.report.tally import Tally
from sojourn.report.terminal.console import say, wide_console
from sojourn.report.terminal.history import show_tally
from sojourn.report.terminal.live import View
from sojourn.report.terminal.watch import Watch, lines, picture, unseen
from sojourn.report.text import printable
from sojourn.service.entry import Entry
from sojourn.service.supervisor import Running

__all__ = ["AsJson", "ForPeople"]

# What a live picture shows of a run without an end.
_WINDOW_S = 600.0


class ForPeople:
    """Says what happens in lines, and draws turns in a terminal if *live*."""

    def __init__(self, *, live: bool | None) -> None:
        self._console = Console()
        self._live = self._console.is_terminal if live is None else live
        self._view: View | None = None

    def starting(self, name: str, begins_with: str) -> None:
        """Say that it is started, and with what: Spark takes its time."""
        typer.echo(f"starting {name} on Spark with {begins_with} …", err=True)

    def ready(
        self,
        entry: Entry,
        running: Running,
        servers: str,
        client_properties: Path | None,
        notes: Sequence[str] = (),
    ) -> None:
        """Say that it runs, and how Kafka's tools reach a broker of its own."""
        self._say(f"{entry.name} · {running.orders.said}", "bold")
        passive = "" if running.deciding.mode == "active" else f"; {running.deciding.why}"
        self._say(f"runs, pid {entry.pid}; Kafka at {servers}; state in {entry.state}{passive}")
        if client_properties is not None:
            self._say(f"client properties for Kafka's tools: {client_properties}")
        for note in notes:
            self._say(f"note: {note}")
        self._say("Ctrl-C ends it when all that was begun is done, twice at once\n")

    def watch(self, running: Running) -> Watch:
        """Return what turns are shown to."""
        if not self._live:
            return lines()
        self._view = View(running.topology, running.orders.target, _WINDOW_S, rolling=True)
        return picture(self._view, 0.0, self._console)

    def turn(self, running: Running) -> None:
        """Draw from now on what may have been changed by hand."""
        if self._view is not None:
            self._view.aim_at(running.orders.target)
            deciding = running.deciding
            idle = [] if deciding.mode == "active" else [f"{deciding.mode}: {deciding.why}"]
            self._view.note = "; ".join([*running.engine.health().notices, *idle])

    def change(self, episode: Episode) -> None:
        """Say nothing: it was shown."""

    def notice(self, text: str) -> None:
        """Say what somebody should know, where no picture shows it."""
        if self._view is None:
            self.progress(text)

    def progress(self, text: str) -> None:
        """Say how far the start, or the end, has come."""
        typer.echo(printable(text), err=True)

    def end(self, tally: Tally, running: Running) -> None:  # noqa: ARG002 - as below
        """Say what it came to."""
        console = wide_console()
        console.print()
        show_tally(console, tally)

    def _say(self, text: str, style: str | None = None) -> None:
        say(self._console, text, style)


class AsJson:
    """Says what happens in lines of JSON, each with its *event*."""

    def __init__(self) -> None:
        self._begins_with = ""

    def starting(self, name: str, begins_with: str) -> None:  # noqa: ARG002 - as above
        """Say nothing yet."""
        self._begins_with = begins_with

    def ready(
        self,
        entry: Entry,
        running: Running,
        servers: str,
        client_properties: Path | None,
        notes: Sequence[str] = (),
    ) -> None:
        """Say that it runs."""
        print_event(
            "ready",
            {
                "name": entry.name,
                "pid": entry.pid,
                "policy": running.orders.said,
                "bootstrap_servers": servers,
                "client_properties": client_properties and str(client_properties),
                "state": entry.state,
                "logs": entry.logs,
                "allocation": dict(running.engine.allocation),
                "max_processors": running.orders.most,
                "notes": list(notes),
                "begins_with": self._begins_with,
            },
        )

    def watch(self, running: Running) -> Watch:  # noqa: ARG002 - as above
        """Return what shows nothing."""
        return unseen()

    def turn(self, running: Running) -> None:
        """Draw nothing."""

    def change(self, episode: Episode) -> None:
        """Say what was changed, or would have been, and what the loop was told."""
        decision = episode.decision
        held = "failure" if episode.failure else "told"
        print_event(
            "change" if decision.kind != "hold" else held,
            {
                "at_s": decision.at_s,
                "kind": decision.kind,
                "before": dict(decision.before),
                "after": dict(decision.after),
                "carried_out": episode.cost is not None,
                "reason": decision.reason,
                "failure": episode.failure,
            },
        )

    def notice(self, text: str) -> None:
        """Say what somebody should know."""
        print_event("notice", {"text": text})

    def progress(self, text: str) -> None:
        """Say how far the start, or the end, has come."""
        print_event("progress", {"text": text})

    def end(self, tally: Tally, running: Running) -> None:
        """Say what it came to."""
        allocation = dict(running.engine.allocation)
        changes = running.changes
        print_event("end", {"turns": tally.turns, "changes": changes, "allocation": allocation})
