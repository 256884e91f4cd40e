"""Settings of the traffic application, read from the environment."""

from dataclasses import dataclass, fields
from typing import Self

from sojourn.errors import BadInput
from sojourn_papers.apps.environment import whole_numbers

_NORTHERNMOST = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How large a cell is, and how long a window.

    A cell is a square of *cell_m*; on the ground it is one near the *latitude*, in degrees. A
    window of *window_s* begins every *slide_s*. A report is late if it is of a slide that began
    more than *lateness_s* before the newest that the cell has a report of. Each is set by a
    variable of its name: `SOJOURN_TRAFFIC_CELL_M=100`.
    """

    cell_m: int = 250
    latitude: int = 38
    window_s: int = 900
    slide_s: int = 300
    lateness_s: int = 600

    def __post_init__(self) -> None:
        for name, value in (("window_s", self.window_s), ("lateness_s", self.lateness_s)):
            if value % self.slide_s:
                raise BadInput(
                    f"{name}={value} is not a multiple of slide_s={self.slide_s}; correct one"
                )
        if self.latitude > _NORTHERNMOST:
            raise BadInput(
                f"latitude={self.latitude}: a degree of longitude is too short there; write "
                f"one up to {_NORTHERNMOST}, also for the south"
            )

    @classmethod
    def of_environment(cls) -> Self:
        """Return the settings of this process. Raise `BadInput` if they are not possible."""
        names = {field.name for field in fields(cls)}
        # a report may be of the newest slide only, and a city on the equator
        from_0 = ("latitude", "lateness_s")
        return cls(
            **whole_numbers("SOJOURN_TRAFFIC", sorted(names.difference(from_0))),
            **whole_numbers("SOJOURN_TRAFFIC", from_0, least=0),
        )

    @property
    def slides(self) -> int:
        """How many slides a window has, and in how many windows a report is."""
        return self.window_s // self.slide_s

    @property
    def late_slides(self) -> int:
        """By how many slides a report may be older than the newest of its cell."""
        return self.lateness_s // self.slide_s
