"""The Spark checkpoint that the state of a part belongs to.

A query with another checkpoint begins with batch 0, at any offsets. The host would mistake its
batches for those that are committed.
"""

from dataclasses import dataclass, field
from pathlib import Path

from sojourn.files.durable_file import write_durably

__all__ = ["CheckpointId"]

_FILE = "checkpoint-id"


@dataclass(slots=True)
class CheckpointId:
    """The id that Spark gave the checkpoint of a part's query, in a file of *folder*."""

    folder: Path
    _known: str = field(default="", init=False)

    def read(self) -> str:
        """Return the id; empty before the first query."""
        try:
            return (self.folder / _FILE).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def refusal(self, query: str) -> str:
        """Return why the query with this checkpoint id is refused; empty if it is not.

        The first query binds the state to its checkpoint. A query without an id is accepted,
        because its checkpoint is unknown.
        """
        if not query or query == self._known:
            return ""
        if not (found := self.read()):
            write_durably(self.folder / _FILE, query.encode())
        elif found != query:
            return (
                f"the state in {self.folder} belongs to the checkpoint with id {found}, and "
                f"the query has another, with id {query}; start it with that checkpoint again, "
                "or with a new state folder"
            )
        self._known = query
        return ""
