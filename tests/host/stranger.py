"""A program on another machine that tries every port of some addresses, and gets what it can.

    python stranger.py ADDRESS...

Prints a line of JSON for each address: its open ports. Each port named on standard input, as
`ADDRESS PORT`, is then tried in every way, with connections that stay open until the end of
input. A line of JSON has the number of bytes that each connection was told: with wrong secrets
those after the greeting, which nobody should get.
"""

import hmac
import json
import os
import socket
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

PORTS = range(1, 65536)
TIMEOUT_S = 30
HELD = 30
# A word, and a number that is drawn for the connection.
GREETING = 40
GARBAGE = (
    b"GET / HTTP/1.1\r\nHost: host\r\n\r\n" * 50,
    b"sojourn1" + bytes(200),
    b"\x00" * 100_000,
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),  # TLS, never finished
    b"\xff" * 72,
)


def open_ports(address):
    """Return the ports at which somebody listens: elsewhere the answer comes at once."""
    found = []
    for port in PORTS:
        with socket.socket() as connection:
            connection.settimeout(TIMEOUT_S)
            if connection.connect_ex((address, port)) == 0:
                found.append(port)
    return found


def told(connection):
    """Return all that the other end says until it hangs up."""
    heard = b""
    with suppress(OSError):
        while some := connection.recv(1 << 16):
            heard += some
    return len(heard)


def said(address, text):
    """Return how much is answered to *text*."""
    with socket.create_connection(address, TIMEOUT_S) as connection:
        with suppress(OSError):  # it may have hung up already
            connection.sendall(text)
        return told(connection)


def answered(address, secret, purpose, *, encrypted):
    """Return how much the host says to one who answers its greeting with a wrong *secret*.

    It does as an agent or a relay does, but does not mind whom it talks to.
    """
    with socket.create_connection(address, TIMEOUT_S) as connection, suppress(OSError):
        if encrypted:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = context.wrap_socket(connection)  # noqa: PLW2901 - the same
        greeting = b""
        while len(greeting) < GREETING and (some := connection.recv(GREETING)):
            greeting += some
        named, number = purpose.ljust(8), os.urandom(32)
        text = b"client" + named + greeting[len(b"sojourn1") :] + number
        connection.sendall(named + number + hmac.digest(secret, text, "sha256"))
        return told(connection)
    return 0


def tried(address):
    """Return what came of every way in; silent and half-open connections stay."""
    silent = [socket.create_connection(address, TIMEOUT_S) for _ in range(HELD)]
    half = [socket.create_connection(address, TIMEOUT_S) for _ in range(HELD)]
    for connection in half:
        connection.sendall(b"agent   " + os.urandom(10))  # the beginning of an answer
    secrets = (b"", b"not the secret", bytes(32), os.urandom(32))
    ways = [(s, p, e) for s in secrets for p in (b"agent", b"relay") for e in (False, True)]
    texts = (*GARBAGE, os.urandom(5000))
    with ThreadPoolExecutor(len(ways) + len(texts)) as at_once:
        wrong = [at_once.submit(answered, address, s, p, encrypted=e) for s, p, e in ways]
        garbage = [at_once.submit(said, address, text) for text in texts]
    result = {
        "wrong secrets": [each.result() for each in wrong],
        "garbage": [each.result() for each in garbage],
    }
    return result, [*silent, *half]


def tell(result):
    """Print a line of JSON."""
    print(json.dumps(result), flush=True)  # noqa: T201 - the test reads it


def main():
    """Scan, tell, try, and hold on."""
    for address in sys.argv[1:]:
        ports = open_ports(address)
        tell({"address": address, "ports": ports})
    held = []
    for line in sys.stdin:
        address, port = line.split()
        result, more = tried((address, int(port)))
        held += more
        tell(result)
    # of those that were silent nobody was told more than a greeting
    for connection in held:
        connection.settimeout(TIMEOUT_S)
    tell({"held": [told(connection) for connection in held]})


if __name__ == "__main__":
    main()
