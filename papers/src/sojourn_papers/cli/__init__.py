"""Commands that are added to `sojourn` where this package is installed."""

from sojourn_papers.cli.apps import apps
from sojourn_papers.cli.reproduce import reproduce

__all__ = ["COMMANDS"]

COMMANDS = {"Try out": (reproduce, apps)}
