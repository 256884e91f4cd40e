"""Encryption and mutual authentication of a connection between machines.

With encryption, TLS comes first, with a self-signed certificate made for one run. The private
key stays with the driver and its hosts, on one machine. Agents and relays get the certificate
and accept no other (pinning), so no authority signs it, and its name has no meaning. TLS
authenticates only the host.

Then both ends authenticate with the secret of the run, in a challenge-response handshake; the
secret itself is never sent. Each end proves that it knows the secret by an HMAC over two random
numbers, one drawn by each end for this connection, so a recorded handshake cannot be replayed.
An unauthenticated client learns nothing, and is disconnected after a timeout.

    host   -> client   greeting, host's number
    client -> host     purpose, client's number, HMAC("client", purpose, both numbers)
    host   -> client   HMAC("server", purpose, both numbers)
"""

import asyncio
import hmac
import socket
import ssl
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from secrets import token_bytes
from typing import Literal, Self, TypeAlias, get_args

from sojourn.errors import EngineError
from sojourn.files.durable_file import write_durably
from sojourn.registry import optional

Purpose: TypeAlias = Literal["agent", "relay"]

NAME = "sojourn"
"""The server name that peers send, whatever machine the host is on."""
HANDSHAKE_S = 10.0
"""Timeout: long enough for a busy machine, short enough to drop silent clients."""

# A run may last for years, and its certificate cannot be replaced while agents hold it. The key
# is deleted at the end of the run, so longer validity does no harm.
_VALID = timedelta(days=3650)
# The clocks of executors may be behind.
_BEFORE = timedelta(days=1)

_GREETING = b"sojourn1"
_NUMBER = _PROOF = 32
_PURPOSE = 8


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


def _proof(secret: bytes, who: str, purpose: bytes, drawn: bytes) -> bytes:
    return hmac.digest(secret, who.encode() + purpose + drawn, "sha256")


async def admit(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    secret: bytes,
    *,
    within_s: float = HANDSHAKE_S,
) -> Purpose | None:
    """Return the purpose of a peer, or None unless it knows the *secret* and a purpose of ours.

    The peer must complete the handshake within *within_s*.
    """
    ours = token_bytes(_NUMBER)
    writer.write(_GREETING + ours)
    try:
        async with asyncio.timeout(within_s):
            told = await reader.readexactly(_PURPOSE + _NUMBER + _PROOF)
    except (OSError, asyncio.IncompleteReadError):
        return None
    purpose, drawn = told[:_PURPOSE], ours + told[_PURPOSE:-_PROOF]
    known = hmac.compare_digest(told[-_PROOF:], _proof(secret, "client", purpose, drawn))
    named = purpose.rstrip().decode(errors="replace")
    if not known:
        return None
    writer.write(_proof(secret, "server", purpose, drawn))
    # None for a client that knows the secret, but names another purpose
    return next((each for each in get_args(Purpose) if each == named), None)


def _answer(greeting: bytes, secret: bytes, purpose: Purpose) -> tuple[bytes, bytes]:
    """Return the client's answer to a greeting, and the proof that the host must reply."""
    if not greeting.startswith(_GREETING):
        raise EngineError("the peer is not a host of this application")
    padded, ours = purpose.encode().ljust(_PURPOSE), token_bytes(_NUMBER)
    drawn = greeting[len(_GREETING) :] + ours
    answer = padded + ours + _proof(secret, "client", padded, drawn)
    return answer, _proof(secret, "server", padded, drawn)


def _check_reply(reply: bytes, expected: bytes) -> None:
    if not hmac.compare_digest(reply, expected):
        raise EngineError("the other end does not know the secret of this run")


async def introduce(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    secret: bytes,
    purpose: Purpose,
) -> None:
    """Authenticate to a host. Raise `EngineError` unless it knows the *secret* too."""
    try:
        async with asyncio.timeout(HANDSHAKE_S):
            greeting = await reader.readexactly(len(_GREETING) + _NUMBER)
            answer, expected = _answer(greeting, secret, purpose)
            writer.write(answer)
            reply = await reader.readexactly(_PROOF)
    except (OSError, asyncio.IncompleteReadError) as error:
        raise EngineError("the host did not accept the secret of this run") from error
    _check_reply(reply, expected)


def introduce_socket(host: socket.socket, secret: bytes, purpose: Purpose) -> None:
    """Authenticate as `introduce` does, on a blocking socket."""
    host.settimeout(HANDSHAKE_S)
    try:
        answer, expected = _answer(_received(host, len(_GREETING) + _NUMBER), secret, purpose)
        host.sendall(answer)
        reply = _received(host, _PROOF)
    except OSError as error:
        raise EngineError("the host did not accept the secret of this run") from error
    _check_reply(reply, expected)
    host.settimeout(None)


def _received(host: socket.socket, number: int) -> bytes:
    told = b""
    while len(told) < number:
        some = host.recv(number - len(told))
        if not some:
            raise ConnectionResetError
        told += some
    return told
