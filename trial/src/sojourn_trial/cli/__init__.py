"""The command that is added to `sojourn` where this package is installed."""

from sojourn_trial.cli.cluster import cluster

__all__ = ["COMMANDS"]

COMMANDS = {"Run and watch": (cluster,)}
