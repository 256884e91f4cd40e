"""What is assumed about an application before anything is measured."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sojourn.app.address import is_application, load_here, with_rates
from sojourn.app.application import App
from sojourn.app.waiting_app import entrances
from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.service.first_plan import first_topology, guesses
from sojourn.service.floor import floor_warning
from sojourn.topology import Topology
from sojourn.topology.file import read_topology

__all__ = ["Assumptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """An application and its topology; *known* are the operators with a given service time."""

    app: App
    topology: Topology
    known: frozenset[str]
    guesses: tuple[str, ...] = ()

    @classmethod
    def at(cls, address: str, rates: Mapping[str, float], *, simulated: bool) -> "Assumptions":
        """Return those on the application at *address*: in a module, or a topology file.

        What a topology file describes is *simulated*, or runs as an application that waits.
        """
        in_module = is_application(address)
        if simulated and not in_module:
            topology = with_rates(read_topology(Path(address)), rates)
            known = frozenset(topology.operator)
            return cls(app=App(topology.name), topology=topology, known=known)
        app = load_here(address)
        if not in_module:
            rates = {each.name: each.per_s for each in entrances(read_topology(Path(address)))}
        elif unknown := rates.keys() - app.sources.keys():
            raise BadInput(
                f"--rate {min(unknown)}: there is no such source; "
                f"there are {', '.join(app.sources)}"
            )
        given = (name for name, o in app.operators.items() if o.hints.service_s is not None)
        return cls(
            app=app,
            topology=first_topology(app, rates),
            known=frozenset(given),
            # Spark measures soon what is guessed; the simulator keeps to the guess
            guesses=tuple(guesses(app, rates)) if simulated else (),
        )

    def notes(self, target: Target) -> tuple[str, ...]:
        """Return a note for each guess, and for a *target* that no allocation can meet."""
        warning = floor_warning(self.topology, target, self.known)
        return (*self.guesses, *((warning,) if warning else ()))
