"""The format of a stream's records in Kafka, where it is not JSON."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from sojourn.errors import BadApplication
from sojourn.topology.check import shown

__all__ = ["Avro"]


@dataclass(frozen=True, slots=True)
class Avro:
    """Records in Avro, with the schema of a *file*, of a *registry*, or of both.

    With a *file* alone messages are Avro's binary encoding and nothing else. With a *registry*
    of Confluent they begin with the id of their schema; new ones get the latest schema of the
    *subject*, or that of the *file*, which is registered. Records wait for a registry that does
    not answer, up to *patience_s*. A relative *file* is in the working directory.

    >>> Avro(registry="http://localhost:8081", subject="clicks-value").subject
    'clicks-value'
    """

    file: str | PathLike[str] = ""
    registry: str = field(default="", kw_only=True, repr=False)  # may have a password
    subject: str = field(default="", kw_only=True)
    patience_s: float = field(default=900.0, kw_only=True)

    def __post_init__(self) -> None:
        if not self.file and not self.registry:
            way_out = (
                'write Avro("clicks.avsc"), or Avro(registry="http://…", subject="clicks")'
            )
            raise BadApplication("format", "Avro has no schema", way_out)
        if bool(self.registry) != bool(self.subject):
            given, other = ("registry", "subject") if self.registry else ("subject", "registry")
            raise BadApplication("format", f"Avro has a {given}, but no {other}", "give both")
        if self.registry and not self.registry.startswith(("http://", "https://")):
            problem = f"{shown(self.registry)} is not the address of a registry"
            raise BadApplication("format", problem, "write http://host:8081")
        if not self.patience_s >= 0:
            problem = f"a patience of {shown(self.patience_s)} s is negative"
            raise BadApplication("format", problem, "write patience_s=0 or more")
        if self.file:  # other processes may have another working directory
            object.__setattr__(self, "file", str(Path(self.file).absolute()))
