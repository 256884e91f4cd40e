"""A PostgreSQL server for tests, where one is installed."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

START_S = 60.0
STOP_S = 20.0
# PostgreSQL refuses to run as root.
USERS = ("postgres", "nobody")


def programs():
    """Return the folder of PostgreSQL's programs; None if it is not installed."""
    named = shutil.which("initdb")
    found = [Path(named)] if named else sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return found[-1].resolve().parent if found else None


@contextmanager
def server():
    """Start a server in a temporary folder, give its address, and end it in any case."""
    folder = Path(tempfile.mkdtemp(prefix="sojourn-postgres-"))
    try:
        process = None
        try:
            as_user = _user(folder)
            _run(
                "initdb", "-D", folder / "data", "-U", "sojourn", "-A", "trust", "-N", **as_user
            )
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            place = ("-D", folder / "data", "-k", folder, "-h", "127.0.0.1", "-p", str(port))
            with (folder / "log").open("wb") as log:
                process = subprocess.Popen(
                    [programs() / "postgres", *place, "-c", "fsync=off"],
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    **as_user,
                )
            address = f"postgresql://sojourn@127.0.0.1:{port}/postgres"
            _await(process, folder / "log")
            yield address
        finally:
            if process is not None:
                _end(process)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _user(folder):
    """Return the user whose processes may be PostgreSQL's, and give it the folder."""
    if os.getuid() != 0:
        return {}
    for name in USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    raise AssertionError(f"there is none of the users {', '.join(USERS)}")


def _run(program, *arguments, **as_user):
    command = [programs() / program, *arguments]
    done = subprocess.run(
        command, check=False, capture_output=True, timeout=START_S, cwd="/", **as_user
    )
    assert done.returncode == 0, done.stderr.decode()


def _await(process, log):
    deadline = time.monotonic() + START_S
    while "ready to accept connections" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.05)


def _end(process):
    process.send_signal(signal.SIGINT)  # ends its connections
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
