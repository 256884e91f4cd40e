"""The command that this package adds to `sojourn` through an entry point."""

from sojourn_trial.cli.cluster import cluster

__all__ = ["COMMANDS"]

COMMANDS = {"Run and watch": (cluster,)}
