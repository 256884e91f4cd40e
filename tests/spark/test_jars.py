import http.server
import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from functools import partial
from importlib.metadata import PackageNotFoundError, version

import pytest

from processes import started
from sojourn.errors import BadFile, EngineError, JarsMissing, NoJava
from sojourn.spark.driver.jvm import jars as jars_module
from sojourn.spark.driver.jvm.jars import jars_folder, main, resolve_jars
from spark.mirror import Mirror
from spark.test_watchdog import DEADLINE_S

pytestmark = pytest.mark.spark
SPARK = version("pyspark")
RESOLVE = (
    "from sojourn.spark.driver.jvm.jars import resolve_jars; print(resolve_jars().connector)"
)


@pytest.fixture
def mirror(tmp_path):
    """Return a repository that lacks the connector of this Spark, as the public one does."""
    made = Mirror(tmp_path / "maven")
    made.add_broker()
    made.add_connector("4.2.0", tokens="4.1.0-preview1")
    return made


@pytest.fixture
def settings(mirror, tmp_path):
    return mirror.settings(tmp_path / "settings.xml")


@pytest.fixture
def without_java(tmp_path, monkeypatch):
    def take_away():
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))

    return take_away


def names(jars):
    return sorted(jar.name for jar in jars)


def left_in(folder):
    return sorted(found.name for found in folder.iterdir())


def resolving(folder, settings):
    """Return another process that resolves."""
    return started(
        [sys.executable, "-c", RESOLVE],
        env=os.environ | {"SOJOURN_JARS": str(folder), "SOJOURN_IVY_SETTINGS": str(settings)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_the_real_jars_are_those_that_spark_lacks_and_a_broker(jars):
    assert [name.rsplit("-", 1)[0] for name in names(jars.spark)][:2] == [
        "commons-pool2",
        "kafka-clients",
    ]
    assert len(jars.spark) == 4
    assert f"spark-sql-kafka-0-10_2.13-{jars.connector}.jar" in names(jars.spark)
    assert {"kafka_2.13-3.9.2.jar", "slf4j-simple-1.7.36.jar"} <= set(names(jars.broker))
    assert all(jar.stat().st_size for jar in (*jars.spark, *jars.broker))


@pytest.mark.slow
def test_the_real_jars_can_be_downloaded_anew(tmp_path, jars):
    fresh = resolve_jars(tmp_path)
    assert names(fresh.spark) == names(jars.spark)
    assert names(fresh.broker) == names(jars.broker)


def test_without_the_connector_of_this_spark_the_next_best_is_taken(tmp_path, settings):
    said = []
    jars = resolve_jars(tmp_path / "jars", settings=settings, tell=said.append)
    assert jars.connector == "4.2.0"
    assert names(jars.spark) == [
        "commons-pool2-2.13.1.jar",
        "kafka-clients-3.9.1.jar",
        "spark-sql-kafka-0-10_2.13-4.2.0.jar",
        "spark-token-provider-kafka-0-10_2.13-4.1.0-preview1.jar",
    ]
    assert names(jars.broker) == ["kafka_2.13-3.9.2.jar", "slf4j-simple-1.7.36.jar"]
    assert len(said) == 1


def test_the_connector_of_this_spark_is_preferred(tmp_path, mirror, settings):
    mirror.add_connector(SPARK, tokens=SPARK)
    jars = resolve_jars(tmp_path / "jars", settings=settings)
    assert jars.connector == SPARK
    assert f"spark-token-provider-kafka-0-10_2.13-{SPARK}.jar" in names(jars.spark)
    assert len(jars.spark) == 4


def test_what_is_there_is_used_without_java(tmp_path, settings, without_java):
    first = resolve_jars(tmp_path / "jars", settings=settings)
    (place,) = (tmp_path / "jars").glob("jars-*")
    assert left_in(tmp_path / "jars") == [place.name, "lock"]
    without_java()
    assert resolve_jars(tmp_path / "jars") == first


def test_a_jar_that_is_gone_or_cut_is_downloaded_again(tmp_path, settings):
    """Caches are cleaned by programs that know nothing of them, and disks become full."""
    jars = resolve_jars(tmp_path / "jars", settings=settings)
    whole = jars.broker[0].read_bytes()
    jars.broker[0].write_bytes(whole[:-1])
    jars.spark[0].unlink()
    assert resolve_jars(tmp_path / "jars", settings=settings) == jars
    assert jars.broker[0].read_bytes() == whole
    assert jars.spark[0].exists()


def test_a_folder_whose_mark_is_damaged_is_not_taken_for_complete(
    tmp_path, settings, without_java
):
    jars = resolve_jars(tmp_path / "jars", settings=settings)
    (path,) = (tmp_path / "jars").glob("jars-*/complete.json")
    good = path.read_text()
    without_java()
    for mark in ("", "{}", "[]", json.dumps(json.loads(good) | {"wanted": "another"})):
        path.write_text(mark)
        with pytest.raises(NoJava):
            resolve_jars(tmp_path / "jars", settings=settings)
    path.write_text(good)
    assert resolve_jars(tmp_path / "jars") == jars


def test_processes_that_resolve_at_once_do_not_disturb_each_other(tmp_path, settings):
    with ExitStack() as stack:
        together = [
            stack.enter_context(resolving(tmp_path / "jars", settings)) for _ in range(3)
        ]
        assert [one.communicate()[0] for one in together] == ["4.2.0\n"] * 3
        assert [one.returncode for one in together] == [0] * 3


class Stalling(http.server.SimpleHTTPRequestHandler):
    """Keeps whoever wants the broker waiting, until it is told to go on."""

    asked, go_on = threading.Event(), threading.Event()

    def do_GET(self):
        if self.path.endswith("kafka_2.13-3.9.2.jar"):
            self.asked.set()
            self.go_on.wait()
        super().do_GET()

    def log_message(self, *_):
        pass


def test_a_killed_download_is_not_taken_for_complete(tmp_path, mirror):
    """Ivy outlives who started it, so a second process waits until the first Ivy is done."""
    serve = partial(Stalling, directory=mirror.root)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            at = f"http://127.0.0.1:{server.server_port}"
            settings = mirror.settings(tmp_path / "stalling.xml", at)
            with resolving(tmp_path / "jars", settings):
                assert Stalling.asked.wait(DEADLINE_S)
            assert not list((tmp_path / "jars").glob("jars-*/complete.json"))
            Stalling.go_on.set()
            jars = resolve_jars(tmp_path / "jars", settings=settings)
        finally:
            Stalling.go_on.set()
            server.shutdown()
    assert names(jars.broker) == ["kafka_2.13-3.9.2.jar", "slf4j-simple-1.7.36.jar"]
    assert len(left_in(tmp_path / "jars")) == 2


def test_a_repository_that_nobody_answers_for_is_named_with_what_is_missing(tmp_path, mirror):
    settings = mirror.settings(tmp_path / "closed.xml", "http://127.0.0.1:9/maven2")
    with pytest.raises(JarsMissing) as raised:
        resolve_jars(tmp_path / "jars", settings=settings)
    assert raised.value.missing == ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0",)
    assert "Connection refused" in raised.value.said
    assert "SOJOURN_IVY_SETTINGS" in str(raised.value)
    assert str(settings) in str(raised.value)


def test_what_a_repository_does_not_have_is_named(tmp_path):
    poor = Mirror(tmp_path / "maven")
    poor.add_connector("4.2.0", tokens="4.1.0-preview1")
    with pytest.raises(JarsMissing) as raised:
        resolve_jars(tmp_path / "jars", settings=poor.settings(tmp_path / "poor.xml"))
    assert raised.value.missing == (
        "org.apache.kafka:kafka_2.13:3.9.2",
        "org.slf4j:slf4j-simple:1.7.36",
    )
    assert "not found" in raised.value.said
    assert not list((tmp_path / "jars").glob("jars-*/complete.json"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<ivysettings><nonsense", "XML document structures must start and end"),
        ("<ivysettings><settings defaultResolver='none'/></ivysettings>", "called none"),
    ],
)
def test_settings_that_ivy_cannot_read_are_named(tmp_path, monkeypatch, text, said):
    (tmp_path / "broken.xml").write_text(text)
    monkeypatch.setenv("SOJOURN_IVY_SETTINGS", str(tmp_path / "broken.xml"))
    with pytest.raises(JarsMissing) as raised:
        resolve_jars(tmp_path / "jars")
    assert str(tmp_path / "broken.xml") in str(raised.value)
    assert said in str(raised.value)
    assert raised.value.missing == ("the jars for the spark class path",)


def test_settings_that_are_not_there_are_bad_input(tmp_path):
    with pytest.raises(BadFile, match=r"gone.xml: cannot be read: No such file"):
        resolve_jars(tmp_path, settings=tmp_path / "gone.xml")


def test_a_folder_that_cannot_be_written_is_named_with_the_way_out(tmp_path, settings):
    (tmp_path / "file").touch()
    with pytest.raises(BadFile, match="SOJOURN_JARS"):
        resolve_jars(tmp_path / "file" / "jars", settings=settings)


def test_without_pyspark_the_extra_is_named(tmp_path, monkeypatch):
    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(jars_module, "distribution", missing)
    with pytest.raises(EngineError, match=r"install sojourn\[spark\]"):
        resolve_jars(tmp_path)


def test_a_pyspark_without_ivy_is_named(tmp_path, monkeypatch, settings):
    class Bare:
        version = SPARK

        def locate_file(self, path):
            return tmp_path / path

    monkeypatch.setattr(jars_module, "distribution", lambda _name: Bare())
    with pytest.raises(EngineError, match="there is no Ivy in"):
        resolve_jars(tmp_path / "jars", settings=settings)


def test_jars_are_kept_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("SOJOURN_JARS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert jars_folder() == tmp_path / ".cache" / "sojourn"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert jars_folder() == tmp_path / ".cache" / "sojourn"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert jars_folder() == tmp_path / "xdg" / "sojourn"
    monkeypatch.setenv("SOJOURN_JARS", str(tmp_path / "ours"))
    assert jars_folder() == tmp_path / "ours"


def test_run_as_a_program_it_says_what_it_did(tmp_path, monkeypatch, settings, capsys):
    monkeypatch.setenv("SOJOURN_JARS", str(tmp_path / "jars"))
    monkeypatch.setenv("SOJOURN_IVY_SETTINGS", str(settings))
    assert main() == 0
    assert capsys.readouterr().out.endswith("ready: Kafka connector 4.2.0, broker (2 jars)\n")


def test_run_as_a_program_it_ends_with_1_and_a_line_if_it_cannot(
    tmp_path, monkeypatch, without_java, capsys
):
    monkeypatch.setenv("SOJOURN_JARS", str(tmp_path / "jars"))
    without_java()
    assert main() == 1
    assert capsys.readouterr().err.startswith(
        "sojourn: Java 17 or newer is required: JAVA_HOME is"
    )
