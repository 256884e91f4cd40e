"""A policy chosen by name, with the texts of its options parsed."""

import re
from collections import defaultdict
from dataclasses import dataclass

from sojourn.act.options import Option, options, read_value, value_text, with_options
from sojourn.act.policy import DEFAULT, Policy, names, policy
from sojourn.decide.target import Target
from sojourn.errors import BadInput
from sojourn.text import shown


@dataclass(frozen=True, slots=True)
class Setting:
    """An option of a policy with its value as text."""

    source: str
    """Where it was given, for error messages."""
    option: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyChoice:
    """The name of a policy and its settings, not yet validated."""

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
        """Return the policy, and a line with its name, goal and changed options.

        Raise `BadInput` for an unknown option or an invalid value.

        >>> read_choice("drs:forecast=yes").made(Target("p95", 3.0), 20)[1]
        'drs, p95 ≤ 3 s, at most 20 processors, forecast=yes'
        """
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
        given = defaultdict[str, list[Setting]](list)
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
            given[setting.option].append(setting)
        values: dict[str, object] = {}
        for name, settings in given.items():
            try:
                values[name] = read_value(there[name], [setting.text for setting in settings])
            except BadInput as error:
                raise BadInput(f"{settings[-1].source}: {error}") from error
        return values


def read_choices(text: str | None) -> dict[str, PolicyChoice]:
    """Parse policies such as `drs,threshold:utilisation=0.6`; None means all policies.

    >>> list(read_choices("ds2, drs,ds2"))
    ['ds2', 'drs']
    """
    if text is None:
        every = sorted(names(), key=lambda name: name != DEFAULT)
        return {name: PolicyChoice(name=name) for name in every}
    return {part.strip(): read_choice(part.strip()) for part in text.split(",")}


def read_choice(text: str) -> PolicyChoice:
    """Parse a policy such as `threshold:utilisation=0.6:tolerance=0.2`.

    >>> read_choice("ours.policies:calm:patience_s=3s").name
    'ours.policies:calm'
    """
    name, *settings = re.split(r":(?=\s*\w+\s*=)", text)
    given = tuple(read_setting(shown(text), each) for each in settings)
    return PolicyChoice(name=name, settings=given)


def read_setting(source: str, text: str) -> Setting:
    """Parse a setting such as `margin=0.2`; *source* is named in errors."""
    option, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not option or not value:
        raise BadInput(
            f"{source}: {shown(text)} is not OPTION=VALUE; write, for example, margin=0.2"
        )
    return Setting(source, option, value)
