"""Starts the processes of hosts, with their settings and secrets."""

import os
import secrets
import socket
import subprocess
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import msgspec

from sojourn.app.loading import import_path
from sojourn.errors import EngineError
from sojourn.files.private_files import append_to, make_folder
from sojourn.spark.wire.handshake import RunIdentity
from sojourn.spark.wire.host_settings import SECRET, TOKEN, HostSettings

# The file with the key of hosts, in a private folder: other users can see arguments.
_IDENTITY = "identity.pem"


class HostLauncher:
    """Starts hosts that connect to *controller*, a socket in a private folder.

    Their output goes to a file in the folder *logs*, if there is one. On a cluster, hosts
    listen at the address *binds* for peers that know the `secret`; with an *identity*, these
    connections are encrypted.
    """

    def __init__(
        self,
        controller: Path,
        *,
        logs: Path | None = None,
        binds: str | None = None,
        identity: RunIdentity | None = None,
    ) -> None:
        self._controller, self._logs, self._binds = controller, logs, binds
        self._identity, self.secret = identity, secrets.token_bytes()
        self._listening: dict[str, socket.socket] = {}

    @property
    def certificate(self) -> str:
        """The certificate of hosts, for peers; empty without encryption."""
        return "" if self._identity is None else self._identity.certificate

    def port(self, part: str) -> int:
        """Return the port on which the host of a part listens for other machines."""
        listens = self._listens(part)
        if listens is None:
            raise EngineError(f"{part} does not listen for other machines")
        return int(listens.getsockname()[1])

    def launch(self, settings: HostSettings) -> tuple["subprocess.Popen[bytes]", str]:
        """Start a host; return its process, and the token that authenticates it.

        *settings* need not contain the address of the controller.
        """
        listens = self._listens(settings.name)
        fds = () if listens is None else (listens.fileno(),)
        told = replace(
            settings,
            controller=self._controller,
            listens=fds[0] if fds else None,
            identity=self._identity_file(),
        )
        make_folder(told.folder)
        token = secrets.token_hex()
        # settings go to standard input: with many operators they are too long for an argument
        command = [sys.executable, "-m", "sojourn.spark.host", settings.name]
        environment = {
            **os.environ,
            TOKEN: token,
            SECRET: self.secret.hex() if fds else "",
            "PYTHONUNBUFFERED": "1",
            # a host must find the same modules as this process
            "PYTHONPATH": import_path(),
        }
        with nullcontext() if self._logs is None else _log_in(self._logs) as log:
            process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                pass_fds=fds,
                start_new_session=True,  # Ctrl-C is for the application to handle
            )
        if process.stdin is not None:
            # a host that has ended already is noticed by the caller, from its exit status
            with suppress(BrokenPipeError), process.stdin as settings_in:
                settings_in.write(msgspec.json.encode(told, enc_hook=str))
        return process, token

    def close(self) -> None:
        """Close the sockets for other machines."""
        for listens in self._listening.values():
            listens.close()

    def _identity_file(self) -> Path | None:
        if self._identity is None:
            return None
        path = self._controller.with_name(_IDENTITY)
        self._identity.write(path)
        return path

    def _listens(self, part: str) -> socket.socket | None:
        """Return the listening socket of a host; it is kept when the host is restarted."""
        if self._binds is None:
            return None
        if part not in self._listening:
            try:
                self._listening[part] = socket.create_server((self._binds, 0), backlog=128)
            except OSError as error:
                raise EngineError(
                    f"cannot listen at {self._binds}: {error.strerror or error}; choose an "
                    "address of this machine that executors can reach"
                ) from error
        return self._listening[part]


def _log_in(folder: Path) -> BinaryIO:
    make_folder(folder)
    return append_to(folder / "hosts.log")
