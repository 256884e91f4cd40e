"""Real sockets: who is let in, who is not, and that nobody can do harm by trying."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from sojourn.errors import BadAllocation, BadFile, BadInput, EngineError
from sojourn.service.control import REQUEST_BYTES, ask, peer_uid, serving
from sojourn.service.folders import Entry, find, running
from sojourn.service.name_lock import NameLock

STRANGER = """
import os, socket, sys
os.setuid(65534)
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect(sys.argv[1])
    print(connection.makefile().readline())
"""


def echo(request):
    match request.get("ask"):
        case "refuse":
            raise BadAllocation("no operator is named")
        case "fail":
            raise EngineError("no processors to be had")
        case "break":
            raise ZeroDivisionError("by zero")
    return {"heard": dict(request), "nothing": float("nan")}


def claimed(name="words"):
    return NameLock(name, address="words:app", state=Path("state"), logs=Path("state/logs"))


@pytest.fixture
def app(places):
    """Return the folder and the entry of an application that listens."""
    with claimed() as held, serving(held.socket, held.token, echo):
        assert held.folder.parent == places
        yield held.folder, Entry.read(held.folder)


def sent(entry, raw):
    """Return what is answered to these bytes."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(entry.socket)
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        return json.loads(connection.makefile().readline())


def test_the_owner_is_answered(app):
    assert ask(*app, {"ask": "status"}) == {"heard": {"ask": "status"}, "nothing": None}


def test_the_token_does_not_reach_what_answers(app):
    assert "token" not in ask(*app, {"ask": "status"})["heard"]


def test_many_are_answered_one_after_the_other(app):
    assert [ask(*app, {"n": n})["heard"]["n"] for n in range(20)] == list(range(20))


@pytest.mark.parametrize(
    "told",
    [{}, {"token": ""}, {"token": "0" * 64}, {"token": None}, {"token": ["a"]}, {"token": "é"}],
)
def test_without_the_token_nothing_is_done(app, told):
    answered = sent(app[1], json.dumps({"ask": "status", **told}).encode() + b"\n")
    assert answered == {
        "kind": "failed",
        "error": "refused: the token is not valid for this run",
    }


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"hello\n", "not JSON"),
        (b"\xff\xfe\n", "not JSON"),
        (b"[" * 60_000 + b"\n", "not JSON"),
        (b"[1]\n", "not a JSON object"),
        (b"x" * (REQUEST_BYTES + 1), f"more than {REQUEST_BYTES} bytes"),
        (b'{"token"', "connection was closed"),
    ],
)
def test_what_makes_no_sense_is_refused_and_the_next_is_answered(app, raw, said):
    assert said in sent(app[1], raw)["error"]
    assert ask(*app, {"n": 1})["heard"] == {"n": 1}


def test_somebody_who_goes_away_harms_nobody(app, capfd):
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(app[1].socket)
    assert ask(*app, {"n": 1})["heard"] == {"n": 1}
    assert capfd.readouterr().err == ""


def test_errors_reach_the_one_who_asked(app):
    with pytest.raises(BadInput, match="words: no operator is named"):
        ask(*app, {"ask": "refuse"})
    with pytest.raises(EngineError, match="words: no processors to be had"):
        ask(*app, {"ask": "fail"})
    with pytest.raises(EngineError, match="the request failed: ZeroDivisionError: by zero"):
        ask(*app, {"ask": "break"})


@pytest.mark.parametrize("file", ["token", "."])
def test_a_command_trusts_no_folder_or_token_that_others_may_use(app, file):
    folder, entry = app
    (folder / file).chmod(0o755)
    with pytest.raises(BadFile, match="is accessible to other users"):
        ask(folder, entry, {"ask": "status"})


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_another_user_is_refused_whatever_they_would_say():
    """The folder keeps them out; where it does not, the socket does."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "open.sock"
        with serving(path, "token", echo):
            Path(folder).chmod(0o755)
            path.chmod(0o777)
            done = subprocess.run(
                [sys.executable, "-c", STRANGER, path],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
    assert "only the user who runs the application may control it" in done.stdout


def test_a_command_tells_its_token_to_no_other_user(app, monkeypatch):
    monkeypatch.setattr("sojourn.service.control.peer_uid", lambda _connection: os.getuid() + 1)
    with pytest.raises(EngineError, match="belongs to another user"):
        ask(*app, {"ask": "status"})


def test_the_other_end_is_known_by_the_system():
    one, two = socket.socketpair()
    with one, two:
        assert peer_uid(one) == os.getuid()


def test_where_the_system_does_not_tell_the_token_decides(app, monkeypatch):
    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert ask(*app, {"n": 1})["heard"] == {"n": 1}


@pytest.mark.usefixtures("places")
def test_one_that_has_ended_is_gone():
    with claimed() as held:
        with serving(held.socket, held.token, echo):
            entry = Entry.read(held.folder)
        assert not held.socket.exists()
        with pytest.raises(EngineError, match=rf"words \(pid {os.getpid()}\) does not answer"):
            ask(held.folder, entry, {"ask": "status"})
    with pytest.raises(EngineError, match=rf"words \(pid {os.getpid()}\) has ended"):
        ask(held.folder, entry, {"ask": "status"})


# -- which application is meant ----------------------------------------------------------------


def test_the_only_one_that_runs_is_meant(app):
    assert find() == find("words") == app


@pytest.mark.usefixtures("places")
def test_where_none_runs_it_says_how_to_start_one():
    with pytest.raises(
        EngineError, match="no application is running; `sojourn run` starts one"
    ):
        find()
    with pytest.raises(EngineError, match="no application 'words' is running; `sojourn run`"):
        find("words")


@pytest.mark.usefixtures("app")
def test_of_several_one_has_to_be_named():
    with claimed("votes") as held, serving(held.socket, held.token, echo):
        with pytest.raises(
            BadInput, match="2 applications are running: votes, words; choose one: --app votes"
        ):
            find()
        assert find("votes")[1].name == "votes"
        with pytest.raises(
            EngineError, match=r"no application 'w' is running; .* votes, words"
        ):
            find("w")
        with pytest.raises(EngineError, match="no application"):
            find("../sojourn/votes")


@pytest.mark.usefixtures("app")
def test_what_is_stale_or_not_ours_is_not_listed(places):
    with claimed("stale"):
        assert list(running()) == ["words"]
    broken = places / "broken"
    broken.mkdir(mode=0o700)
    (broken / "running.json").write_text('{"pid": 1}')
    (broken / "running.json").chmod(0o600)
    assert list(running()) == ["words"]
    with pytest.raises(BadFile, match="does not describe a running application"):
        find("broken")


@pytest.mark.usefixtures("places")
def test_one_that_started_without_the_environment_is_found_too(monkeypatch):
    """A command in a terminal has XDG_RUNTIME_DIR, an application of cron has not."""
    runtime = os.environ["XDG_RUNTIME_DIR"]
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    with claimed() as held, serving(held.socket, held.token, echo):
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        assert find()[0] == find("words")[0] == held.folder


@pytest.mark.usefixtures("places")
def test_one_too_busy_to_answer_is_not_taken_for_gone():
    with claimed() as held, socket.socket(socket.AF_UNIX) as busy:
        busy.bind(str(held.socket))
        busy.listen(0)
        waiting = [socket.socket(socket.AF_UNIX) for _ in range(4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(str(held.socket))
        entry = Entry.read(held.folder)
        assert entry.answers(patience_s=0.05)
        with pytest.raises(EngineError, match="is busy"):
            ask(held.folder, entry, {"ask": "status"}, patience_s=0.05)
        for one in waiting:
            one.close()
