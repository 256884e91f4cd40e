import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

from sojourn.cli import app
from sojourn.errors import BadFile
from sojourn.report.parquet import roots_to_parquet

VLD = str(Path(__file__).parents[3] / "examples" / "vld.yaml")
BEST = ("--allocation", "extract=10,match=11,aggregate=1")


def simulate(*arguments):
    return CliRunner().invoke(app, ["simulate", VLD, *BEST, *map(str, arguments)])


def test_every_root_is_written_once(tmp_path):
    path = tmp_path / "deep" / "roots.parquet"
    assert simulate("--records", 70_000, "--export", path).exit_code == 0
    roots = parquet.read_table(path)
    assert roots.column_names == ["birth_s", "completion_s", "sum_s"]
    assert roots.num_rows == 70_000
    births_s = roots["birth_s"].to_numpy()
    assert len(np.unique(births_s)) == 70_000
    # nothing branches in a chain, so what is done for a root is what it waits for
    np.testing.assert_allclose(roots["sum_s"], roots["completion_s"])


def test_small_portions_are_written_together(tmp_path):
    path = tmp_path / "roots.parquet"
    roots = np.zeros(3, [("birth_s", "f8"), ("completion_s", "f8"), ("sum_s", "f8")])
    with roots_to_parquet(path, together=10) as write:
        for number in range(9):
            roots["birth_s"] = number
            write(0.0, roots)
    written = parquet.ParquetFile(path)
    assert written.read()["birth_s"].to_pylist() == [n for n in range(9) for _ in range(3)]
    assert written.num_row_groups == 3


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    done = simulate("--records", 100, "--export", tmp_path)
    assert done.exit_code == 2
    assert f"{tmp_path}: cannot be written" in done.stderr


def test_a_run_that_fails_leaves_no_file_behind(tmp_path):
    path = tmp_path / "roots.parquet"
    roots = np.zeros(3, [("birth_s", "f8"), ("completion_s", "f8"), ("sum_s", "f8")])

    def interrupted():
        with roots_to_parquet(path) as write:
            write(0.5, roots)
            write(0.5, roots[:0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not path.exists()


def test_without_pyarrow_an_export_says_what_to_install():
    """It is an optional dependency, so the commands must do without it."""
    program = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from sojourn.cli import app\n"
        f"app(['simulate', {VLD!r}, *{BEST!r}, '--records', '9', '--export', 'x.parquet'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 2
    assert "install sojourn[parquet]" in done.stderr


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with (
        pytest.raises(BadFile, match="cannot be written"),
        roots_to_parquet(tmp_path / "file" / "roots.parquet"),
    ):
        pass
