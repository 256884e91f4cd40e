"""The other end of hosts: starts them, tells them how many processors, hears their reports.

It lives in the application's own process. Hosts end when it is gone, however it went.
"""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from sojourn.errors import EngineError
from sojourn.host.counting import Tally
from sojourn.host.messages import Frames, framed
from sojourn.host.server import Broken, FromHost, Here, Report, Scale, Settings

__all__ = ["Controller"]

_CHUNK = 1 << 16
_LOOK_S = 0.02
_decode = msgspec.msgpack.Decoder(FromHost).decode


class Controller:
    """The hosts of one application, in a *folder* of its own. Leaving it ends them all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._here: dict[str, Here] = {}
        self._writers: dict[str, asyncio.StreamWriter] = {}
        self._tallies: dict[str, list[Tally]] = {}
        self._running: dict[str, int] = {}
        self._broken: dict[str, str] = {}
        self._server: asyncio.AbstractServer | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)  # whoever may connect may command
        self._thread.start()
        listening = asyncio.start_unix_server(self._heard, self._socket)
        self._server = asyncio.run_coroutine_threadsafe(listening, self._loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        for process in self._processes.values():
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def start(self, settings: Settings, *, patience_s: float = 60.0) -> Path:
        """Start a host, and return where feeds reach it once a processor is ready.

        *settings* need not say where the controller is. Raise `EngineError` if it breaks.
        """
        told = replace(settings, controller=self._socket)
        told.folder.mkdir(parents=True, exist_ok=True)
        self._processes[told.name] = subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "sojourn.host", msgspec.json.encode(told, enc_hook=str)]
        )
        self.await_running(told.name, 1, patience_s=patience_s)
        return Path(self._here[told.name].socket)

    def scale(self, name: str, processors: int) -> None:
        """Tell a host how many processors it should have."""
        writer = self._writers.get(name)
        if writer is None:
            raise EngineError(f"{name}: its host is not there")
        self._loop.call_soon_threadsafe(writer.write, framed(Scale(processors)))

    def await_running(self, name: str, processors: int, *, patience_s: float = 60.0) -> None:
        """Return when a host has said that so many processors, or more, can take records."""
        until_s = time.monotonic() + patience_s
        while self._running.get(name, 0) < processors or name not in self._here:
            if name in self._broken:
                raise EngineError(f"{name}: {self._broken[name]}")
            status = self._processes[name].poll()
            if status is not None:
                raise EngineError(f"{name}: its host ended with status {status}")
            if time.monotonic() > until_s:
                raise EngineError(f"{name}: no {processors} processors within {patience_s:g} s")
            time.sleep(_LOOK_S)

    def broken(self) -> Mapping[str, str]:
        """Return the hosts that cannot go on, and why."""
        return dict(self._broken)

    def tallies(self) -> dict[str, list[Tally]]:
        """Return what hosts reported since this was last asked."""
        with self._lock:
            taken, self._tallies = self._tallies, {}
        return taken

    @property
    def _socket(self) -> Path:
        return self._folder / "controller.sock"

    async def _heard(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = Frames()
        try:
            while some := await reader.read(_CHUNK):
                for body in frames.fed(some):
                    self._note(_decode(body), writer)
        except (ConnectionError, asyncio.CancelledError):
            pass
        writer.close()

    def _note(self, message: FromHost, writer: asyncio.StreamWriter) -> None:
        match message:
            case Here(name):
                self._here[name], self._writers[name] = message, writer
            case Report(name, tally):
                self._running[name] = tally.running
                with self._lock:
                    self._tallies.setdefault(name, []).append(tally)
            case Broken(name, reason):
                self._broken[name] = reason

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers.values():
            writer.close()
        tasks = asyncio.all_tasks(self._loop) - {asyncio.current_task(self._loop)}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
