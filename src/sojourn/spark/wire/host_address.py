"""Where a relay reaches the host of its part: on this machine, or from another one."""

import socket
from dataclasses import dataclass, field

from sojourn.spark.wire.authentication import introduce_socket
from sojourn.spark.wire.encrypted_socket import encrypted

__all__ = ["HostAddress"]

_CONNECT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostAddress:
    """A Unix socket at *path*; or, for other machines, a *port* of a *machine*.

    There a relay has to show that it knows the *secret* of the run; with a *certificate*, all
    that is said is encrypted, to a host that has it.
    """

    path: str = ""
    machine: str = ""
    port: int = 0
    secret: bytes = field(default=b"", repr=False)
    certificate: str = field(default="", repr=False)

    def connect(self) -> socket.socket:
        """Return a connection. Raise `OSError`, or `EngineError` if the host refuses it."""
        if not self.machine:
            host = socket.socket(socket.AF_UNIX)
            try:
                host.connect(self.path)
            except OSError:
                host.close()
                raise
            return host
        host = socket.create_connection((self.machine, self.port), timeout=_CONNECT_S)
        try:
            # records would wait for acknowledgements of those before
            host.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.certificate:
                host = encrypted(host, self.certificate)
            introduce_socket(host, self.secret, "relay")
        except BaseException:
            host.close()
            raise
        return host
