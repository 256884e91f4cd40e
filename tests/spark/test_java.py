import os

import pytest

from sojourn.errors import EngineError, NoJava
from sojourn.spark.driver.jvm.java import find_java


def java_that_says(folder, text):
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{text}\nEND\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    "said", ['openjdk version "17.0.15" 2025-04-15', 'java version "21" 2023-09-19 LTS']
)
def test_the_java_of_java_home_is_taken_before_the_one_on_the_path(tmp_path, monkeypatch, said):
    java = java_that_says(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert find_java() == java


def test_without_java_home_the_path_is_searched(tmp_path, monkeypatch):
    java = java_that_says(tmp_path, 'openjdk version "17.0.1"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{java.parent}{os.pathsep}{os.environ['PATH']}")
    assert find_java() == java


def test_no_java_at_all_is_said_with_the_way_out(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoJava) as raised:
        find_java()
    assert str(raised.value) == (
        "Java 17 or newer is required: JAVA_HOME is not set, and java is not on the PATH; "
        "install it, "
        "and set JAVA_HOME to its folder or put it on the PATH"
    )
    assert isinstance(raised.value, EngineError)


def test_a_java_home_without_java_is_named(tmp_path, monkeypatch):
    """Spark would not look on the PATH either."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(NoJava, match=r"JAVA_HOME is \S+gone, and \S+ cannot be run"):
        find_java()


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_292", "16"])
def test_an_old_java_is_named_with_its_version(tmp_path, monkeypatch, version):
    java = java_that_says(tmp_path, f'openjdk version "{version}" 2019-01-15')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava) as raised:
        find_java()
    assert f'{java} is version "{version}"' in str(raised.value)


def test_what_is_no_java_is_shown_with_what_it_said(tmp_path, monkeypatch):
    """A system may have a program of that name that only offers to install one."""
    java_that_says(tmp_path, "Unable to locate a Java Runtime")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="'Unable to locate a Java Runtime'"):
        find_java()


def test_a_java_that_cannot_be_run_is_named(tmp_path, monkeypatch):
    java_that_says(tmp_path, "").write_bytes(b"\x7fELF, but of another machine")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(NoJava, match="cannot be run"):
        find_java()
