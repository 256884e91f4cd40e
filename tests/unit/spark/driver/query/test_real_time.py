from pathlib import Path

import sojourn.spark


def test_queries_are_started_in_one_place_which_says_how_they_commit():
    modules = Path(sojourn.spark.__file__).parent.rglob("*.py")
    assert [path.name for path in modules if "writeStream" in path.read_text()] == [
        "real_time.py"
    ]
