"""A processor: one record after the other, from the host and back, until the host is gone."""

import os
import signal
import socket
from time import perf_counter, process_time
from traceback import format_exception_only

import msgspec

from sojourn.host.job import Job
from sojourn.host.messages import Done, Frames, Ready, Record, Result, Work, framed

__all__ = ["run"]

_CHUNK = 1 << 16
_decode = msgspec.msgpack.Decoder(Work).decode


def run(host: socket.socket, job: Job) -> None:
    """Serve the records that come from *host*, until it closes the connection."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the application to handle
    job.set_up()
    host.sendall(framed(Ready(os.getpid())))
    frames = Frames()
    while some := host.recv(_CHUNK):
        for body in frames.fed(some):
            results = [_served(job, record) for record in _decode(body).records]
            host.sendall(framed(Done(results)))


def _served(job: Job, record: Record) -> Result:
    began_s, cpu_s = perf_counter(), process_time()
    try:
        outputs, error = list(job(record)), ""
    except Exception as raised:  # noqa: BLE001 - it is the user's, and may be anything
        outputs, error = [], "".join(format_exception_only(raised)).strip()
    return Result(outputs, error, perf_counter() - began_s, process_time() - cpu_s)
