"""The network of a trial cluster: a bridge, and a network namespace per worker.

The bridge is in the namespace of this machine and has the first address, on which driver,
master and broker listen. This needs Linux, root, and the command `ip`.
"""

import ipaddress
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from sojourn.errors import BadInput, EngineError

LINK = Path(__file__).with_name("delay_link.py")
_RATE = re.compile(r"(\d+(?:\.\d+)?)([kmg])bit")
_BITS = {"k": 1e3, "m": 1e6, "g": 1e9}
_NETWORKS = 256
_FIRST_WORKER = 10
# Prefix of the MAC addresses of workers; 02 marks a locally administered address.
_OURS = "02:53:4a"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """The connection of a worker to the bridge."""

    rate: str = ""
    """Maximum rate in each direction, such as "100mbit"; empty is unlimited."""
    delay_s: float = 0.0
    """Delay in each direction."""

    def __post_init__(self) -> None:
        if self.rate and (not _RATE.fullmatch(self.rate) or self.bits_per_s < 1e5):
            raise BadInput(
                f"{self.rate!r} is not a rate of at least 100kbit; write 100mbit or 1.5gbit"
            )
        if not 0 <= self.delay_s <= 10:  # also false for NaN
            raise BadInput(f"a delay of {self.delay_s:g} s is not possible; write 0 to 10 s")

    @property
    def bits_per_s(self) -> float:
        """The rate in bits per second.

        >>> Wire(rate="1.5gbit").bits_per_s
        1500000000.0
        """
        number, unit = _RATE.fullmatch(self.rate).groups()  # type: ignore[union-attr]
        return float(number) * _BITS[unit]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialNetwork:
    """The network with this *number*, owned by the cluster with this *token*.

    >>> network = TrialNetwork(number=3, token="f00")
    >>> network.driver_address, network.address(1), network.namespace(1)
    ('10.77.3.1', '10.77.3.11', 'sojourn-3-1')
    """

    number: int
    token: str

    @property
    def bridge(self) -> str:
        """The bridge interface on this machine."""
        return f"sojourn-{self.number}"

    @property
    def driver_address(self) -> str:
        """The address of this machine for workers."""
        return f"10.77.{self.number}.1"

    def address(self, worker: int) -> str:
        """Return the address of a worker."""
        return f"10.77.{self.number}.{_FIRST_WORKER + worker}"

    def namespace(self, worker: int) -> str:
        """Return the namespace of a worker, which is also the name of the interface here."""
        return f"{self.bridge}-{worker}"

    def link_command(self, worker: int, delay_s: float) -> list[str]:
        """Return the command that creates both ends of a wire with a delay."""
        here, skip = self.namespace(worker), _OURS.replace(":", "")
        return [sys.executable, "-I", "-S", str(LINK), str(delay_s), skip, here, f"{here}e"]

    def connect(self, worker: int, wire: Wire) -> None:
        """Create the namespace of a worker, and connect it to the bridge.

        It reaches the other workers and the current addresses of this machine; connections to
        other addresses fail immediately. With a delay, both ends of the wire must already
        exist (see `link_command`).
        """
        name = self.namespace(worker)
        _ip("netns", "add", name)
        if wire.delay_s:
            _ip("link", "set", f"{name}e", "netns", name, "name", "eth0")
        else:
            _ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
        own = f"{_OURS}:{self.number:02x}:00:{worker:02x}"
        _ip("-n", name, "link", "set", "eth0", "address", own)
        _ip("-n", name, "addr", "add", f"{self.address(worker)}/24", "dev", "eth0")
        for inside in ("lo", "eth0"):
            _ip("-n", name, "link", "set", inside, "up")
        _ip("link", "set", name, "master", self.bridge, "up")
        # No default route: nothing would answer, and an unreachable name server delays each
        # connection of a Kafka client, which looks up the name of its broker.
        for each in _addresses_here() - {self.driver_address}:
            _ip("-n", name, "route", "add", each, "via", self.driver_address)
        if wire.rate:
            # a burst of 10 ms: a smaller one cannot be metered
            burst = max(65536, int(wire.bits_per_s / 8 / 100))
            limit = ("tbf", "rate", wire.rate, "burst", str(burst), "latency", "50ms")
            _run("tc", "qdisc", "add", "dev", name, "root", *limit)
            _run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *limit)

    def processes(self, workers: Iterable[int]) -> set[psutil.Process]:
        """Return the processes in the namespaces of *workers*."""
        found = set[psutil.Process]()
        for worker in workers:
            with suppress(EngineError):  # the namespace is gone
                for pid in _ip("netns", "pids", self.namespace(worker)).split():
                    with suppress(psutil.Error):
                        found.add(psutil.Process(int(pid)))
        return found

    def cut(self, worker: int) -> None:
        """Drop all packets to and from a worker; its connections stay open."""
        _ip("link", "set", self.namespace(worker), "down")

    def mend(self, worker: int) -> None:
        """Deliver packets again after `cut`."""
        _ip("link", "set", self.namespace(worker), "up")

    def disconnect(self, worker: int) -> None:
        """Remove the namespace of a worker and its wire, if they exist."""
        for command in (("link", "del"), ("netns", "del")):
            with suppress(EngineError):
                _ip(*command, self.namespace(worker))

    @property
    def ours(self) -> bool:
        """Whether the bridge exists, and belongs to this cluster."""
        try:
            (found,) = json.loads(_ip("-j", "link", "show", self.bridge))
        except EngineError:
            return False
        return bool(found.get("ifalias") == self.token)

    def remove(self, workers: Iterable[int]) -> None:
        """Remove the bridge and the namespaces of *workers*, if they belong to this cluster."""
        if self.ours:
            for worker in workers:
                self.disconnect(worker)
            _ip("link", "del", self.bridge)


def why_not() -> str:
    """Return the reason why network namespaces are not possible; empty if they are."""
    if sys.platform != "linux":
        return "network namespaces exist only on Linux"
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "the command ip (iproute2) is not installed"
    return ""


def claim_network(token: str) -> TrialNetwork:
    """Create the bridge of a network whose addresses are free, and return the network.

    Raise `EngineError` if the system does not allow it, or no network is free.
    """
    said = ""
    for number in range(_NETWORKS):
        network = TrialNetwork(number=number, token=token)
        if _in_use(f"10.77.{number}.0/24"):
            continue
        try:
            _ip("link", "add", network.bridge, "type", "bridge")
        except EngineError as error:
            said = str(error)
            if "exists" in said:
                continue  # another cluster was faster
            raise
        try:
            _ip("link", "set", network.bridge, "alias", token)
            own = f"02:53:4b:{number:02x}:00:01"
            _ip("link", "set", network.bridge, "address", own)
            _ip("addr", "add", f"{network.driver_address}/24", "dev", network.bridge)
            _ip("link", "set", network.bridge, "up")
        except BaseException:
            _ip("link", "del", network.bridge)
            raise
        return network
    raise EngineError(
        f"no network of 10.77.0.0/16 is free{said and f': {said}'}; add --plain, or remove some"
    )


def _in_use(network: str) -> bool:
    """Return whether a route of this machine leads to *network*, except the default route."""
    wanted = ipaddress.ip_network(network)
    for route in json.loads(_ip("-j", "route", "show", "table", "all")):
        destination = route["dst"]
        with suppress(ValueError):  # names, such as default
            if ipaddress.ip_network(destination, strict=False).overlaps(wanted):
                return True
    return False


def _addresses_here() -> set[str]:
    """Return the IPv4 addresses of this machine, without loopback."""
    return {
        each.address
        for interface in psutil.net_if_addrs().values()
        for each in interface
        if each.family == socket.AF_INET and not ipaddress.ip_address(each.address).is_loopback
    }


def _ip(*arguments: str) -> str:
    return _run("ip", *arguments)


def _run(*command: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own arguments
            command, capture_output=True, text=True, errors="replace", check=False
        )
    except OSError as error:
        raise EngineError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        raise EngineError(f"`{' '.join(command)}` failed: {done.stderr.strip()}")
    return done.stdout
