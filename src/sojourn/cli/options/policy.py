"""`--policy`, its options, `--passive`, and `--placement`."""

from typing import Annotated

from typer import Option

from sojourn.act.options import PolicyChoice, Setting, read_setting
from sojourn.act.policy import DEFAULT, names
from sojourn.app.address import import_from_here
from sojourn.cli.options.completion import completing, policies
from sojourn.cli.options.group import Group
from sojourn.decide.place import Placer, placer
from sojourn.decide.place import names as placer_names
from sojourn.measure.duration import read_duration_s
from sojourn.text import shown

PassiveOption = Annotated[bool, Option("--passive", help="Only recommend; change nothing.")]


def _read_policy(
    *,
    policy: Annotated[
        str,
        Option(
            help=f"Policy: {', '.join(names())}, or your own: package.module:name.",
            autocompletion=policies,
        ),
    ] = DEFAULT,
    set_: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="OPTION=VALUE",
            help="Option of the policy: margin=0.2; may be repeated. `sojourn policies` lists "
            "them.",
        ),
    ] = None,
    t_ra: Annotated[
        str | None,
        Option(
            metavar="TIME", help="drs: minimum time between changes that are not urgent (T_ra)."
        ),
    ] = None,
    drain: Annotated[
        str | None, Option(metavar="TIME", help="drs: time to work off a backlog.")
    ] = None,
    quiet_hours: Annotated[
        list[str] | None,
        Option(
            metavar="FROM-UNTIL", help="drs: no changes during 08:00-18:00; may be repeated."
        ),
    ] = None,
    forecast: Annotated[
        bool, Option("--forecast", help="drs: plan for the predicted load.")
    ] = False,
) -> PolicyChoice:
    """Return the chosen policy; the other options are short forms of `--set`."""
    import_from_here(policy)
    settings = [read_setting(f"--set {shown(text)}", text) for text in set_ or ()]
    for source, option, time in (("--t-ra", "t_ra_s", t_ra), ("--drain", "drain_s", drain)):
        if time is not None:  # unlike --set, these options require a unit
            settings.append(Setting(source, option, str(read_duration_s(time))))
    settings += [Setting("--quiet-hours", "quiet", text) for text in quiet_hours or ()]
    if forecast:
        settings.append(Setting("--forecast", "forecast", "yes"))
    return PolicyChoice(name=policy, settings=tuple(settings))


PolicyOptions = Annotated[PolicyChoice, Group(_read_policy)]

_PLACEMENT = Option(
    metavar="NAME",
    help=f"Placement of processors on nodes: {', '.join(placer_names())}, or your own: "
    "package.module:name.",
    autocompletion=completing(placer_names),
)
PlacementOption = Annotated[str, _PLACEMENT]
NewPlacementOption = Annotated[str | None, _PLACEMENT]


def read_placement(name: str) -> Placer:
    """Return the placer of this name; a user's own may be in the current folder."""
    import_from_here(name)
    return placer(name)
