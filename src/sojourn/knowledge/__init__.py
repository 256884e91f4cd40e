"""The knowledge of the loop: observations, decisions and their effects."""

from sojourn.knowledge.episode import Decision, Episode, Kind, News, Wish
from sojourn.knowledge.error_budget import ErrorBudget, JudgedSlice
from sojourn.knowledge.knowledge import (
    STARTS_S,
    Knowledge,
    NodeNeed,
    allocation_text,
    batch_ended,
    measured_s,
)
from sojourn.knowledge.prediction_error import PredictionError

__all__ = [
    "STARTS_S",
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
