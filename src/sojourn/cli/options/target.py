"""The latency target: a statistic and seconds."""

from typing import Annotated

import typer

from sojourn.cli.options.duration import read_duration_s
from sojourn.cli.options.group import Group
from sojourn.decide.target import Target
from sojourn.errors import BadTarget

__all__ = ["RequiredTargetOptions", "TargetOptions"]


def _read_target(
    *,
    target_mean: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Target for the mean sojourn time: 500ms, 1.5s, 2m."),
    ] = None,
    target_p50: Annotated[
        str | None,
        typer.Option(
            "--target-p50", metavar="TIME", help="Target for the median of completion."
        ),
    ] = None,
    target_p90: Annotated[
        str | None,
        typer.Option(
            "--target-p90", metavar="TIME", help="Target for the 90th percentile of completion."
        ),
    ] = None,
    target_p95: Annotated[
        str | None,
        typer.Option(
            "--target-p95", metavar="TIME", help="Target for the 95th percentile of completion."
        ),
    ] = None,
    target_p99: Annotated[
        str | None,
        typer.Option(
            "--target-p99", metavar="TIME", help="Target for the 99th percentile of completion."
        ),
    ] = None,
) -> Target | None:
    """Return the target; None if none is given."""
    texts = {
        "mean": target_mean,
        "p50": target_p50,
        "p90": target_p90,
        "p95": target_p95,
        "p99": target_p99,
    }
    given = {statistic: text for statistic, text in texts.items() if text is not None}
    if len(given) > 1:
        both = " and ".join(f"--target-{statistic}" for statistic in given)
        raise BadTarget(f"{both} are both given; write one of them")
    for statistic, text in given.items():
        return Target(statistic, read_duration_s(text))
    return None


TargetOptions = Annotated[Target | None, Group(_read_target)]


def _read_required_target(*, target: TargetOptions) -> Target:
    """Return the target. Raise `BadTarget` if none is given."""
    if target is None:
        raise BadTarget(
            "a target is required; write --target-p95 3s, or --target-mean, -p50, -p90 or -p99"
        )
    return target


RequiredTargetOptions = Annotated[Target, Group(_read_required_target)]
