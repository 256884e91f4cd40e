"""Encrypted connections between machines: a real host, real agents, real relays."""

import asyncio
import json
import os
import signal
import socket
import ssl
import stat
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from host.clustering import DEADLINE_S, HERE, cluster_in, lines_of, words_of
from host.relaying import Query, route_of
from sojourn.errors import EngineError
from sojourn.spark.wire.handshake import (
    RunIdentity,
    host_context,
    introduce_socket,
    peer_context,
)
from sojourn.spark.wire.host_address import encrypted

MUCH = bytes(range(256)) * 20_000  # more than sockets hold


@pytest.fixture
def identity():
    return RunIdentity.new()


@pytest.fixture
def cluster(tmp_path, monkeypatch, identity):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with cluster_in(tmp_path, identity) as made:
        yield made


class Wiretap:
    """Forwards connections to a port, and keeps what went over the wire."""

    def __init__(self, port):
        self._to, self._ends, self.seen = port, [], bytearray()
        self._server = socket.create_server((HERE, 0))
        self.port = self._server.getsockname()[1]
        self._threads = [threading.Thread(target=self._forward)]

    def __enter__(self):
        self._threads[0].start()
        return self

    def __exit__(self, *_exception):
        for end in (self._server, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in (self._server, *self._ends):
            end.close()

    def garble(self):
        """Say to all hosts something that is not encrypted, on connections that are."""
        for far in self._ends[1::2]:
            with suppress(OSError):
                far.sendall(b"garbage" * 100)

    def _forward(self):
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                far = socket.create_connection((HERE, self._to))
                self._ends += (near, far)
                for ends in ((near, far), (far, near)):
                    thread = threading.Thread(target=self._carry, args=ends)
                    thread.start()
                    self._threads.append(thread)

    def _carry(self, source, sink):
        with suppress(OSError):
            while some := source.recv(1 << 16):
                self.seen += some
                sink.sendall(some)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize("encrypts", [True, False])
def test_what_is_on_the_wire_can_be_read_only_without_encryption(
    tmp_path, monkeypatch, identity, encrypts
):
    monkeypatch.setenv("PYTHONPATH", "tests")
    with cluster_in(tmp_path, identity if encrypts else None) as cluster:
        cluster.start(on={"executor-1": 1})
        with Wiretap(cluster.controller.launcher.port("part")) as tap:
            cluster.agent("executor-1", port=tap.port)
            cluster.runs(executor_1=1)
            address = cluster.address(port=tap.port)
            query = Query(cluster.controller, address, route_of("where"))
            rows = query.results(*lines_of(50, "overheard"))
        assert words_of(rows) == sorted(f"overheard-{n}" for n in range(50))
        for payload in (b"overheard", b"sojourn1", b"of_application"):
            assert (payload in tap.seen) is not encrypts
        assert cluster.controller.launcher.secret not in tap.seen


def test_records_pass_and_a_host_that_dies_finds_its_agents_again(cluster):
    query = cluster.start(on={"executor-1": 1, "executor-2": 1})
    cluster.agent("executor-1")
    doomed = cluster.agent("executor-2")
    cluster.runs(executor_1=1, executor_2=1)
    large = [json.dumps({"line": f"{n}-{'x' * 200_000}"}).encode() for n in range(20)]
    assert len(query.results(*large)) == 20
    threading.Timer(0.3, doomed.kill).start()
    rows = query.results(*lines_of(100, "slow"))
    assert words_of(rows) == sorted(f"slow-{n}" for n in range(100))
    cluster.runs(executor_1=2)
    os.kill(cluster.controller.pid("where"), signal.SIGKILL)
    cluster.until(cluster.controller.ended)
    cluster.start(on={"executor-1": 1})
    cluster.runs(executor_1=1)
    assert len(query.results(*lines_of(5))) == 5


def test_who_does_not_encrypt_gets_nowhere_and_stalls_nothing(cluster):
    query = cluster.start(on={"executor-1": 1})
    cluster.agent("executor-1")
    cluster.runs(executor_1=1)
    port = cluster.controller.launcher.port("part")
    noisy = socket.create_connection((HERE, port))
    noisy.sendall(b"GET / HTTP/1.1\r\n\r\n" * 100)
    assert b"sojourn1" not in _rest(noisy)
    # some say nothing, and some stop in the middle of their first message
    silent = [socket.create_connection((HERE, port)) for _ in range(100)]
    for stalled in silent[::2]:
        stalled.sendall(b"\x16\x03\x01\x02\x00\x01")
    try:
        assert len(query.results(*lines_of(20))) == 20
        for oldest in silent[:30]:  # only so many are heard at a time, and others wait for none
            assert _rest(oldest) == b""
    finally:
        for each in (*silent, noisy):
            each.close()
    assert cluster.controller.nodes().keys() == {"executor-1"}


def test_what_a_stranger_adds_to_a_connection_ends_it_and_not_the_host(cluster):
    query = cluster.start(on={"executor-1": 1})
    host = cluster.controller.pid("where")
    with Wiretap(cluster.controller.launcher.port("part")) as tap:
        cluster.agent("executor-1", port=tap.port)
        cluster.runs(executor_1=1)
        with cluster.address(port=tap.port).connect() as relay:
            tap.garble()
            assert _rest(relay) == b""
        # the agent has connected again
        assert len(query.results(*lines_of(20))) == 20
    assert cluster.controller.pid("where") == host
    assert cluster.controller.ended() == {}


def test_who_does_not_know_the_secret_gets_nowhere(cluster, identity):
    cluster.start(on={"executor-1": 1})
    host = socket.create_connection((HERE, cluster.controller.launcher.port("part")))
    with encrypted(host, identity.certificate) as stranger, pytest.raises(EngineError):
        introduce_socket(stranger, b"not the secret", "relay")


def _rest(end):
    """Return what still comes before the other end closes."""
    end.settimeout(DEADLINE_S)
    heard = []
    with suppress(ConnectionError):
        while some := end.recv(1 << 16):
            heard.append(some)
    return b"".join(heard)


@contextmanager
def _impostor(folder, identity):
    """Give the port of a server with *identity*, and what became of those who connected."""
    file, became = folder / "impostor.pem", []
    identity.write(file)
    context = host_context(file)

    def pose(server):
        with suppress(OSError):
            while True:
                peer, _ = server.accept()
                try:
                    with context.wrap_socket(peer, server_side=True) as there:
                        there.sendall(b"sojourn1" + bytes(32))
                        became.append(there.recv(1000) and "spoke")
                except OSError:
                    became.append("refused")

    with socket.create_server((HERE, 0)) as server:
        threading.Thread(target=pose, args=(server,), daemon=True).start()
        yield server.getsockname()[1], became


def test_a_relay_speaks_to_no_host_with_another_certificate(cluster, tmp_path):
    with _impostor(tmp_path, RunIdentity.new()) as (port, became):
        with pytest.raises(EngineError, match="does not have the certificate of this run"):
            cluster.address(port=port).connect()
        cluster.until(lambda: became)
        assert set(became) == {"refused"}


def test_an_agent_speaks_to_no_host_with_another_certificate(cluster, tmp_path):
    with _impostor(tmp_path, RunIdentity.new()) as (port, became):
        cluster.agent("executor-1", port=port)
        cluster.until(lambda: len(became) > 1)  # it goes on trying
        assert set(became) == {"refused"}


def test_the_impostor_would_be_spoken_to_with_the_certificate(cluster, tmp_path, identity):
    """So it is the certificate for which others refuse it."""
    with _impostor(tmp_path, identity) as (port, became):
        cluster.agent("executor-1", port=port)
        cluster.until(lambda: became)
        assert became[0] == "spoke"


def test_the_key_is_for_its_owner_and_in_no_argument(cluster, tmp_path, identity):
    cluster.start(on={"executor-1": 1})
    file = tmp_path / "all" / "identity.pem"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert identity.key in file.read_text()
    assert "PRIVATE" not in identity.certificate
    secret = identity.key.splitlines()[1]
    assert secret not in repr(identity)
    host = Path("/proc") / str(cluster.controller.pid("where"))
    for seen in ("cmdline", "environ"):
        assert secret.encode() not in (host / seen).read_bytes()


def test_what_makes_certificates_may_be_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(EngineError, match=r"cryptography.*; install sojourn\[encrypt\]"):
        RunIdentity.new()


def test_nothing_older_than_tls_13_is_spoken(tmp_path, identity):
    identity.write(tmp_path / "pem")
    for context in (host_context(tmp_path / "pem"), peer_context(identity.certificate)):
        assert context.minimum_version == ssl.TLSVersion.TLSv1_3


@contextmanager
def _served(folder, identity, serve):
    """Give a connection to a server that does *serve*, which returns something, and that."""
    identity.write(folder / "pem")
    loop, returned = asyncio.new_event_loop(), []

    async def run(end):
        over = asyncio.Event()

        async def met(reader, writer):
            returned.append(await serve(reader, writer))
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            over.set()

        async with await asyncio.start_server(met, sock=end, ssl=host_context(folder / "pem")):
            await over.wait()

    with socket.create_server((HERE, 0)) as end:
        thread = threading.Thread(target=lambda: loop.run_until_complete(run(end.dup())))
        thread.start()
        host = socket.create_connection(end.getsockname())
        with encrypted(host, identity.certificate) as peer:
            yield peer, returned
        thread.join(DEADLINE_S)
        loop.close()


def test_two_threads_read_and_write_at_once(tmp_path, identity):
    async def echo(reader, writer):
        left = len(MUCH)
        while left:
            some = await reader.read(1 << 16)
            left -= len(some)
            writer.write(some)
            await writer.drain()

    with _served(tmp_path, identity, echo) as (peer, _):
        writing = threading.Thread(target=peer.sendall, args=(MUCH,))
        writing.start()
        assert _rest(peer) == MUCH
        writing.join()


def test_what_was_sent_before_a_close_arrives(tmp_path, identity):
    async def read(reader, _writer):
        return await reader.read()

    with _served(tmp_path, identity, read) as (peer, returned):
        peer.sendall(MUCH)
        peer.close()
    assert returned == [MUCH]


def test_what_a_host_said_before_it_closed_is_read(tmp_path, identity):
    async def say(_reader, writer):
        writer.write(MUCH)

    with _served(tmp_path, identity, say) as (peer, _):
        assert _rest(peer) == MUCH
        peer.sendall(MUCH)  # and nobody waits for ever to say something to one that is gone
