"""The latency to keep: a statistic of the sojourn time, and seconds."""

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
        typer.Option(metavar="TIME", help="Mean sojourn time to keep: 500ms, 1.5s, 2m."),
    ] = None,
    target_p50: Annotated[
        str | None,
        typer.Option("--target-p50", metavar="TIME", help="Median of completion to keep."),
    ] = None,
    target_p90: Annotated[
        str | None,
        typer.Option("--target-p90", metavar="TIME", help="90th percentile to keep."),
    ] = None,
    target_p95: Annotated[
        str | None,
        typer.Option("--target-p95", metavar="TIME", help="95th percentile to keep."),
    ] = None,
    target_p99: Annotated[
        str | None,
        typer.Option("--target-p99", metavar="TIME", help="99th percentile to keep."),
    ] = None,
) -> Target | None:
    """Return the one target that was given; None without any."""
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
        raise BadTarget(f"{both} are given; a plan keeps one target, so write one of them")
    for statistic, text in given.items():
        return Target(statistic, read_duration_s(text))
    return None


TargetOptions = Annotated[Target | None, Group(_read_target)]


def _read_required_target(*, target: TargetOptions) -> Target:
    """Return the one target that was given."""
    if target is None:
        raise BadTarget(
            "there is no target to judge by; write --target-p95 3s, or another of "
            "--target-mean, -p50, -p90, -p99"
        )
    return target


RequiredTargetOptions = Annotated[Target, Group(_read_required_target)]
