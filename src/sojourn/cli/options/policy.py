"""`--policy`, its options, and `--passive`."""

import re
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated

import typer

from sojourn.act.options import Option, options, with_options
from sojourn.act.policy import DEFAULT, Policy, names, policy
from sojourn.cli.options.address import import_from_here
from sojourn.cli.options.completion import policies
from sojourn.cli.options.duration import read_duration_s
from sojourn.cli.options.group import Group
from sojourn.cli.options.value import read_value, value_text
from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.topology.check import shown

__all__ = ["Choice", "PassiveOption", "PolicyOptions", "Setting", "read_choice", "read_choices"]

PassiveOption = Annotated[
    bool, typer.Option("--passive", help="Only recommend; change nothing.")
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The text of an option of a policy; *source* is where it was given."""

    source: str
    option: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The name of a policy, and its settings."""

    name: str
    settings: tuple[Setting, ...] = ()

    def made(
        self,
        target: Target,
        most: int | None,
        *,
        every_s: float | None = None,
        pauses: bool = True,
    ) -> tuple[Policy, str]:
        """Return the policy, and a line with its name, goal and options that are not default.

        Raise a `BadInput` that names an unknown option or a bad value.

        >>> read_choice("drs:forecast=yes").made(Target("p95", 3.0), 20)[1]
        'drs, p95 ≤ 3 s, at most 20 processors, forecast=yes'
        """
        import_from_here(self.name)
        plain = policy(self.name, target=target, most=most, every_s=every_s, pauses=pauses)
        chosen = with_options(plain, self._values(options(plain)))
        changed = [
            f"{option.name}={value_text(option, option.value)}"
            for option in options(chosen).values()
            if option.value != option.default
        ]
        most_text = [] if most is None else [f"at most {most} processors"]
        return chosen, ", ".join([self.name, str(target), *most_text, *changed])

    def _values(self, there: dict[str, Option]) -> dict[str, object]:
        texts, sources = defaultdict[str, list[str]](list), dict[str, str]()
        for setting in self.settings:
            if setting.option not in there:
                known = (
                    f"it has {', '.join(there)} (`sojourn policies {self.name}`)"
                    if there
                    else "it has no options, so leave it out"
                )
                raise BadInput(
                    f"{setting.source}: {self.name} has no option {shown(setting.option)}; "
                    f"{known}"
                )
            texts[setting.option].append(setting.text)
            sources[setting.option] = setting.source
        values: dict[str, object] = {}
        for name, given in texts.items():
            try:
                values[name] = read_value(there[name], given)
            except BadInput as error:
                raise BadInput(f"{sources[name]}: {error}") from error
        return values


def read_choices(text: str | None) -> dict[str, Choice]:
    """Return the policies in `drs,threshold:utilisation=0.6`; all of them for None.

    >>> list(read_choices("ds2, drs,ds2"))
    ['ds2', 'drs']
    """
    if text is None:
        every = sorted(names(), key=lambda name: name != DEFAULT)
        return {name: Choice(name=name) for name in every}
    return {part.strip(): read_choice(part.strip()) for part in text.split(",")}


def read_choice(text: str) -> Choice:
    """Return the policy in `threshold:utilisation=0.6:tolerance=0.2`.

    >>> read_choice("ours.policies:calm:patience_s=3s").name
    'ours.policies:calm'
    """
    name, *settings = re.split(r":(?=\s*\w+\s*=)", text)
    return Choice(name=name, settings=tuple(_setting(shown(text), each) for each in settings))


def _setting(source: str, text: str) -> Setting:
    option, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not option or not value:
        raise BadInput(
            f"{source}: {shown(text)} is not OPTION=VALUE; write, for example, margin=0.2"
        )
    return Setting(source=source, option=option, text=value)


def _read_policy(
    *,
    policy: Annotated[
        str,
        typer.Option(
            help=f"Policy: {', '.join(names())}, or your own: package.module:name.",
            autocompletion=policies,
        ),
    ] = DEFAULT,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="OPTION=VALUE",
            help="Option of the policy: margin=0.2; may be repeated. `sojourn policies` lists "
            "them.",
        ),
    ] = None,
    t_ra: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="drs: least time between two changes that can wait (T_ra)."
        ),
    ] = None,
    drain: Annotated[
        str | None, typer.Option(metavar="TIME", help="drs: time to work off a backlog.")
    ] = None,
    quiet_hours: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FROM-UNTIL", help="drs: no changes during 08:00-18:00; may be repeated."
        ),
    ] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="drs: plan for the predicted load.")
    ] = False,
) -> Choice:
    """Return the chosen policy; the other options are short forms of `--set`."""
    settings = [_setting(f"--set {shown(text)}", text) for text in set_ or ()]
    for source, option, time in (("--t-ra", "t_ra_s", t_ra), ("--drain", "drain_s", drain)):
        if time is not None:  # here the unit is required
            text = str(read_duration_s(time))
            settings.append(Setting(source=source, option=option, text=text))
    settings += [
        Setting(source="--quiet-hours", option="quiet", text=text) for text in quiet_hours or ()
    ]
    if forecast:
        settings.append(Setting(source="--forecast", option="forecast", text="yes"))
    return Choice(name=policy, settings=tuple(settings))


PolicyOptions = Annotated[Choice, Group(_read_policy)]
