"""TLS between machines, with a self-signed certificate made for one run.

The private key stays with the driver and its hosts, on one machine. Agents and relays get the
certificate and accept no other (pinning), so no authority signs it, and its name has no
meaning. TLS authenticates only the host; agents and relays authenticate inside the connection,
with the secret of the run (`sojourn.spark.wire.authentication`).
"""

import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from sojourn.files.durable_file import write_durably
from sojourn.registry import optional

__all__ = ["HANDSHAKE_S", "NAME", "RunIdentity", "host_context", "peer_context"]

NAME = "sojourn"
"""The server name that peers send, whatever machine the host is on."""
HANDSHAKE_S = 10.0
"""Timeout: long enough for a busy machine, short enough to drop silent clients."""

# A run may last for years, and its certificate cannot be replaced while agents hold it. The key
# is deleted at the end of the run, so longer validity does no harm.
_VALID = timedelta(days=3650)
# The clocks of executors may be behind.
_BEFORE = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """A self-signed *certificate* and its *key*, both as PEM."""

    certificate: str
    key: str = field(repr=False)

    @classmethod
    def new(cls) -> Self:
        """Return a new key with its certificate.

        Raise `EngineError` if the package `cryptography` is not installed.
        """
        with optional("encryption needs", "encrypt"):
            from cryptography import x509  # noqa: PLC0415 - only the driver needs it
            from cryptography.hazmat.primitives import hashes, serialization  # noqa: PLC0415
            from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _BEFORE)
            .not_valid_after(now + _VALID)
            # it cannot sign other certificates
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(key, hashes.SHA256())
        )
        pem = serialization.Encoding.PEM
        private = key.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return cls(certificate=certificate.public_bytes(pem).decode(), key=private.decode())

    def write(self, file: Path) -> None:
        """Write both to *file*, readable only by its owner."""
        write_durably(file, (self.key + self.certificate).encode())


def host_context(identity: Path) -> ssl.SSLContext:
    """Return the TLS context of a host; the file *identity* has its key and certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.num_tickets = 0  # sessions are never resumed
    context.load_cert_chain(identity)
    return context


def peer_context(certificate: str) -> ssl.SSLContext:
    """Return the TLS context of agents and relays, which trusts only *certificate*."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the host is identified by its certificate, not its name
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=certificate)
    return context
