import os
from pathlib import Path

import pytest

from sojourn_papers.apps.data import DATA

BESIDE = Path(__file__).parents[4] / "shared" / "data"


@pytest.fixture
def real_data(monkeypatch):
    """Give the test the real data, or skip it."""
    folder = Path(os.environ.get(DATA) or BESIDE)
    if not folder.is_dir():
        pytest.skip("the real data is not there")
    monkeypatch.setenv(DATA, str(folder))
    return folder


@pytest.fixture
def no_data(monkeypatch):
    """Give the test stand-ins for data."""
    monkeypatch.delenv(DATA, raising=False)
