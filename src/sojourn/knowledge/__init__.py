"""The knowledge of the loop: observations, decisions and their effects."""

from sojourn.knowledge.error_budget import ErrorBudget
from sojourn.knowledge.knowledge import (
    STARTS_S,
    Decision,
    Episode,
    Kind,
    Knowledge,
    News,
    NodeNeed,
    PredictionError,
    Wish,
    allocation_text,
    batch_ended,
    measured_s,
)

__all__ = [
    "STARTS_S",
    "Decision",
    "Episode",
    "ErrorBudget",
    "Kind",
    "Knowledge",
    "News",
    "NodeNeed",
    "PredictionError",
    "Wish",
    "allocation_text",
    "batch_ended",
    "measured_s",
]
