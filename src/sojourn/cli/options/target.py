"""The latency target: a statistic and seconds."""

from typing import Annotated, Any

from typer import Option

from sojourn.cli.options.group import Group
from sojourn.decide.target import Target
from sojourn.errors import BadTarget
from sojourn.measure.duration import read_duration_s

__all__ = ["RequiredTargetOptions", "TargetOptions"]


def _option(statistic: str, meaning: str) -> Any:  # noqa: ANN401 - what typer returns
    return Option(f"--target-{statistic}", metavar="TIME", help=f"Target for the {meaning}.")


def _read_target(
    *,
    mean: Annotated[str | None, _option("mean", "mean sojourn time: 500ms, 1.5s, 2m")] = None,
    p50: Annotated[str | None, _option("p50", "median of completion")] = None,
    p90: Annotated[str | None, _option("p90", "90th percentile of completion")] = None,
    p95: Annotated[str | None, _option("p95", "95th percentile of completion")] = None,
    p99: Annotated[str | None, _option("p99", "99th percentile of completion")] = None,
) -> Target | None:
    """Return the target; None if none is given."""
    texts = {"mean": mean, "p50": p50, "p90": p90, "p95": p95, "p99": p99}
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
