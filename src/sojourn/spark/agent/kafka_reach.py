"""Checks whether the Kafka clients of a node reach brokers, and how long name lookups take.

Kafka's client in Java waits for each lookup before it connects, and with TLS or SASL it also
looks up the name of the address that it has connected to. A name server that does not answer
delays every connection by ten seconds or more, and the client reports only a timeout.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

_Found = TypeVar("_Found")

# The timeout of a connection.
_PATIENCE_S = 5.0
# The interval of checks after one has failed.
_AGAIN_S = 5.0
# Far longer than a lookup over a network, and well below the timeout of a name server.
_SLOW_S = 1.0
_WAY_OUT = "correct the name servers of the node (/etc/resolv.conf), or use /etc/hosts"


class KafkaBrokers(msgspec.Struct, frozen=True):
    addresses: tuple[str, ...] = ()
    """As `host:port`."""
    names: bool = False
    """Whether clients look up the names of addresses (TLS, SASL)."""


def kafka_problem(
    brokers: KafkaBrokers,
    *,
    patience_s: float = _PATIENCE_S,
    slow_s: float = _SLOW_S,
    name_of: Callable[[str], object] = socket.gethostbyaddr,
) -> str:
    """Return why a client on this node does not reach a broker quickly; empty if it does.

    A lookup that takes more than *slow_s* is such a reason. The text contains no measured time,
    so it stays the same while the cause lasts. *name_of* looks up the name of an address.

    >>> kafka_problem(KafkaBrokers(addresses=("127.0.0.1:1",)))
    'no connection to Kafka at 127.0.0.1:1: Connection refused'
    """
    checks = [
        _Check(each, patience_s, slow_s, name_of if brokers.names else None)
        for each in brokers.addresses
    ]
    until_s = time.monotonic() + patience_s
    return next(filter(None, [check.result(until_s) for check in checks]), "")


class KafkaChecks:
    """Checks whether clients here reach *brokers*: at the start, and when *asked* is set.

    While there is a problem it checks every *again_s*. Otherwise it does not, because each
    check is a connection that brokers may log.
    """

    def __init__(self, brokers: KafkaBrokers, *, again_s: float = _AGAIN_S) -> None:
        self._brokers, self._again_s, self.asked = brokers, again_s, asyncio.Event()
        self.problem = ""

    async def run(self) -> None:
        while self._brokers.addresses:
            self.asked.clear()
            self.problem = await asyncio.to_thread(kafka_problem, self._brokers)
            with suppress(TimeoutError):
                async with asyncio.timeout(self._again_s if self.problem else None):
                    await self.asked.wait()


class _Check:
    """The check of one broker, in a thread of its own because a lookup cannot be cancelled."""

    def __init__(
        self,
        address: str,
        patience_s: float,
        slow_s: float,
        name_of: Callable[[str], object] | None,
    ) -> None:
        self._address, self._patience_s, self._slow_s = address, patience_s, slow_s
        self._name_of = name_of
        self._looking_up, self._problem = "", ""
        self._thread = threading.Thread(target=self._run, name="Kafka check", daemon=True)
        self._thread.start()

    def result(self, until_s: float) -> str:
        """Return the problem, or an empty text; a check that is not done *until_s* is one."""
        self._thread.join(max(0.0, until_s - time.monotonic()))
        if not self._thread.is_alive():
            return self._problem
        if self._looking_up:
            return _slow(self._looking_up, self._patience_s)
        return f"no connection to Kafka at {self._address} within {self._patience_s:g} s"

    def _run(self) -> None:
        host, _, port = self._address.rpartition(":")
        host = host.strip("[]")
        try:
            places = self._timed(
                host, lambda: socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
            )
        except OSError as error:
            self._problem = (
                f"the name {host} of a Kafka broker cannot be resolved: {_why(error)}"
            )
            return
        try:
            reached = _reached(places, self._patience_s)
        except OSError as error:
            self._problem = f"no connection to Kafka at {self._address}: {_why(error)}"
            return
        if (name_of := self._name_of) is not None:
            with suppress(OSError):  # without a name clients use the address
                self._timed(f"the name of {reached}", lambda: name_of(reached))

    def _timed(self, looked_up: str, call: Callable[[], _Found]) -> _Found:
        """Return the result of *call*, and set the problem if it is slow."""
        self._looking_up, since_s = looked_up, time.monotonic()
        try:
            return call()
        finally:
            self._looking_up = ""
            if time.monotonic() - since_s > self._slow_s:
                self._problem = _slow(looked_up, self._slow_s)


def _reached(places: Sequence[tuple[Any, ...]], patience_s: float) -> str:
    """Return the address of the first of *places* that accepts a connection.

    Raise the `OSError` of the last one if none does.
    """
    failure = OSError("it has no address")
    for family, kind, protocol, _, place in places:
        with socket.socket(family, kind, protocol) as connection:
            connection.settimeout(patience_s)
            try:
                connection.connect(place)
            except OSError as error:
                failure = error
            else:
                return str(connection.getpeername()[0])
    raise failure


def _slow(looked_up: str, than_s: float) -> str:
    return (
        f"looking up {looked_up} takes more than {than_s:g} s, and a Kafka client waits for it "
        f"whenever it connects; {_WAY_OUT}"
    )


def _why(error: OSError) -> str:
    return error.strerror or str(error)
