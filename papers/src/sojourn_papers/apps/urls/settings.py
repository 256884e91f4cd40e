"""Settings of the service and of those who ask it, read from the environment."""

import os
from dataclasses import asdict, dataclass
from typing import Self

from sojourn.errors import BadInput

_PREFIX = "SOJOURN_URLS_"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The *port* of the service, its mean *latency_s* and the part of links that are *dead*.

    A processor remembers where *cache* links lead. Each is set by a variable of its name:
    `SOJOURN_URLS_LATENCY_S=0.1`.
    """

    port: int = 8731
    latency_s: float = 0.05
    dead: float = 0.02
    cache: int = 100_000

    @classmethod
    def of_environment(cls) -> Self:
        """Return the settings of this process. Raise `BadInput` if one is not a number."""
        given: dict[str, int | float] = {}
        for name, kind in (
            ("port", int),
            ("latency_s", float),
            ("dead", float),
            ("cache", int),
        ):
            variable = _PREFIX + name.upper()
            text = os.environ.get(variable)
            if text is None:
                continue
            try:
                given[name] = kind(text)
            except ValueError:
                raise BadInput(f"{variable}={text} is not a number; correct it") from None
        return cls(**given)  # type: ignore[arg-type]

    @property
    def variables(self) -> dict[str, str]:
        """The variables that give a process these settings."""
        return {_PREFIX + name.upper(): str(value) for name, value in asdict(self).items()}
