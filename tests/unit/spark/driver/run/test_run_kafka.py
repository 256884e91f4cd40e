"""The key of an application: as old as its state, and nobody else's."""

import stat

import pytest

from sojourn.errors import BadFile
from sojourn.spark.driver.run.run_kafka import signing_key


def test_a_state_has_one_key_until_it_begins_anew(tmp_path):
    first = signing_key(tmp_path, resumes=False)
    assert len(first) == 32
    assert signing_key(tmp_path, resumes=True) == first
    assert signing_key(tmp_path, resumes=False) != first


def test_nobody_else_may_read_it(tmp_path):
    signing_key(tmp_path, resumes=False)
    assert stat.S_IMODE((tmp_path / "signing-key").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [None, b"", b"abcd", b"no hexadecimal digits", b"\xff"])
def test_a_state_without_its_key_is_refused(tmp_path, content):
    """With another key all that it wrote before would count as new."""
    if content is not None:
        (tmp_path / "signing-key").write_bytes(content)
    with pytest.raises(BadFile, match="signing-key"):
        signing_key(tmp_path, resumes=True)
