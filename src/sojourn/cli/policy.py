"""A policy and what it is told, from the text of options."""

import re
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from sojourn.act.policy import Policy, names, policy
from sojourn.act.policy.drs import Drs
from sojourn.act.policy.drs.holt import Holt
from sojourn.act.policy.drs.quiet_hours import QuietHours
from sojourn.cli.completion import policies
from sojourn.decide.plan import Target
from sojourn.errors import BadInput
from sojourn.topology.check import shown

__all__ = [
    "DrsOptions",
    "PolicyOption",
    "read_policy",
    "read_quiet_hours",
    "read_time_of_day_s",
]

PolicyOption = Annotated[
    str, typer.Option(help=f"What decides: {', '.join(names())}.", autocompletion=policies)
]

_TIME = re.compile(r"(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class DrsOptions:
    """What only drs can be told; None, nothing or False is what it does anyway."""

    t_ra_s: float | None = None
    drain_s: float | None = None
    quiet: tuple[QuietHours, ...] = ()
    forecast: bool = False

    @property
    def given(self) -> dict[str, str]:
        """The options that were given, and how people read them."""
        texts = {
            "--t-ra": "" if self.t_ra_s is None else f"T_ra {self.t_ra_s:g} s",
            "--drain": "" if self.drain_s is None else f"drains in {self.drain_s:g} s",
            "--quiet-hours": f"quiet {' and '.join(map(str, self.quiet))}" * bool(self.quiet),
            "--forecast": "with a forecast" * self.forecast,
        }
        return {option: text for option, text in texts.items() if text}


def read_policy(
    name: str, target: Target, most: int | None, options: DrsOptions
) -> tuple[Policy, str]:
    """Return the policy called *name*, and a line that says what it was told.

    >>> read_policy("drs", Target("p95", 3.0), 20, DrsOptions(forecast=True))[1]
    'drs, p95 ≤ 3 s, at most 20 processors, with a forecast'
    """
    chosen = policy(name, target=target, most=most)
    most_text = [] if most is None else [f"at most {most} processors"]
    said = ", ".join([name, str(target), *most_text, *options.given.values()])
    if not options.given:
        return chosen, said
    if not isinstance(chosen, Drs):
        several = " and ".join(options.given)
        raise BadInput(f"{several}: only drs can be told, and the policy is {name}; choose one")
    caution = replace(chosen.caution, quiet=options.quiet)
    if options.t_ra_s is not None:
        caution = replace(caution, t_ra_s=options.t_ra_s)
    return (
        replace(
            chosen,
            caution=caution,
            drain_s=chosen.drain_s if options.drain_s is None else options.drain_s,
            forecast=Holt() if options.forecast else chosen.forecast,
        ),
        said,
    )


def read_quiet_hours(text: str) -> QuietHours:
    """Return the hours in `22:00-06:00`.

    >>> print(read_quiet_hours("22:00-06:00"))
    22:00-06:00
    """
    since, dash, until = text.partition("-")
    if not dash:
        raise BadInput(f"{shown(text)} are not quiet hours; write 08:00-18:00")
    return QuietHours(read_time_of_day_s(since), read_time_of_day_s(until))


def read_time_of_day_s(text: str) -> float:
    """Return the seconds after midnight of `08:30`.

    >>> read_time_of_day_s("08:30")
    30600.0
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[2]) > 59 or int(match[1]) * 60 + int(match[2]) > 24 * 60:
        raise BadInput(f"{shown(text)} is no time of the day; write 08:30")
    return 3600.0 * int(match[1]) + 60.0 * int(match[2])
