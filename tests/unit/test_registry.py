import pytest

from sojourn.errors import BadInput
from sojourn.model.station import mmk
from sojourn.registry import find, is_outside, names

STATIONS = "sojourn.model.station"


def found(name):
    return find(STATIONS, "station model", name)


def test_a_file_in_the_package_is_all_it_takes(tmp_path, monkeypatch):
    package = tmp_path / "shelf"
    package.mkdir()
    for name in ("__init__", "base", "one"):
        (package / f"{name}.py").write_text("", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert names("shelf") == ("one",)
    assert find("shelf", "station model", "one").__name__ == "shelf.one"
    with pytest.raises(BadInput, match="unknown station model 'base'; write one of one"):
        find("shelf", "station model", "base")


def test_what_is_outside_is_named_by_its_module_and_its_name():
    assert found("mmk") is found("sojourn.model.station.mmk") is mmk
    assert found("sojourn.model.station.mmk:wait_s") is mmk.wait_s
    assert not is_outside("mmk")


@pytest.mark.parametrize(
    "name",
    ["", "mm1", ".", ":", "mmk:", ":mmk", "ours.queue", "ours:queue", "json:no such", "1.2:x",
     "sojourn.model.station.mmk:none", "../mmk:x"],
)  # fmt: skip
def test_what_is_not_there_is_refused_with_what_there_is(name):
    with pytest.raises(BadInput, match="mmk, round_robin, or package"):
        found(name)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1 / 0", "importing broken failed: ZeroDivisionError: division by zero; correct it"),
        ("import nowhere_at_all", "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("(", "importing broken failed: SyntaxError"),
    ],
)
def test_what_cannot_be_imported_is_told_from_what_is_not_there(
    content, said, tmp_path, monkeypatch
):
    (tmp_path / "broken.py").write_text(content, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(BadInput, match=said):
        found("broken:queue")
