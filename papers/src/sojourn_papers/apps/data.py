"""Files of real data: in the folder that `SOJOURN_DATA` names.

Nobody needs it: each application makes a stand-in of its own where a file is missing.
"""

import os
from pathlib import Path

DATA = "SOJOURN_DATA"
"""The variable that names the folder."""


def data_file(name: str) -> Path | None:
    """Return the path of a data file, None if it is not there."""
    folder = os.environ.get(DATA)
    path = Path(folder) / name if folder else None
    return path if path is not None and path.exists() else None
