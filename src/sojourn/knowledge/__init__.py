"""The knowledge of the loop: observations, decisions and their effects."""

from sojourn.knowledge.error_budget import ErrorBudget, JudgedSlice
from sojourn.knowledge.knowledge import (
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
    "Decision",
    "Episode",
    "ErrorBudget",
    "JudgedSlice",
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
