"""Free and occupied TCP ports of this machine."""

import errno
import socket
from contextlib import ExitStack

from sojourn.errors import BrokerFailed

HOST = "127.0.0.1"
"""The loopback address, which only this machine can reach."""

_PATIENCE_S = 1.0


def free_ports(wanted: int | None, host: str = HOST) -> tuple[int, int]:
    """Return two free ports: one of *host*, *wanted* if given, and one of the loopback address.

    Another process may still take them before they are bound. Raise `BrokerFailed` if *wanted*
    is in use, or *host* is not an address of this machine.
    """
    with ExitStack() as held:
        first, second = (
            held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_STREAM))
            for _ in range(2)
        )
        # as Java does: a port in TIME_WAIT counts as free
        first.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            first.bind((host, wanted or 0))
        except (OSError, OverflowError) as error:
            number = getattr(error, "errno", None)
            if number == errno.EADDRNOTAVAIL or isinstance(error, socket.gaierror):
                raise BrokerFailed(
                    f"{host} is not an address of this machine", "choose one that is"
                ) from error
            why = "is in use" if number == errno.EADDRINUSE else f"cannot be used: {error}"
            raise BrokerFailed(
                f"port {wanted} {why}", "choose another, or stop what listens there"
            ) from error
        second.bind((HOST, 0))
        return first.getsockname()[1], second.getsockname()[1]


def answers(port: int, host: str = HOST) -> bool:
    """Return whether a server accepts connections on *port*."""
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE_S) as link:
            # without a listener, TCP may by chance connect the socket to itself
            return bool(link.getsockname() != link.getpeername())
    except OSError:
        return False
