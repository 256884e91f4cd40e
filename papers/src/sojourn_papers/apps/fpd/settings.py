"""Settings of frequent pattern detection, read from the environment."""

from dataclasses import dataclass, fields
from typing import Self

from sojourn_papers.apps.environment import whole_numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How many tweets the *window* has, and what is frequent in it.

    A tweet has at most so many *items*, and sets of them at most *largest*. A set that is in
    *threshold* tweets of the window, or in more, is frequent. Each is set by a variable of its
    name: `SOJOURN_FPD_WINDOW=1000`.
    """

    window: int = 400
    items: int = 5
    largest: int = 3
    threshold: int = 4

    @classmethod
    def of_environment(cls) -> Self:
        """Return the settings of this process. Raise `BadInput` if one is not 1 or more."""
        return cls(**whole_numbers("SOJOURN_FPD", (field.name for field in fields(cls))))
