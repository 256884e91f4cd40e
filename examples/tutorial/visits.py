"""Visits to a web shop, counted by country."""

import random
import time
from collections.abc import Iterator

import sojourn as sj

COUNTRIES = ("de", "fr", "jp", "us")


def samples(seed: int) -> Iterator[tuple[str]]:
    """Yield addresses, the same for the same seed."""
    draw = random.Random(seed)
    while True:
        yield (f"10.0.0.{draw.randrange(256)}",)


app = sj.App("visits")
visits = app.source("visits", schema="address string", samples=samples)


@app.operator(reads=visits, emits="country string", service_s=0.02, on_error="dead_letter")
def locate(address: str) -> Iterator[tuple[str]]:
    """Yield the country of an address."""
    time.sleep(0.02)  # stands for a question to another service
    yield (COUNTRIES[int(address.rpartition(".")[2]) % 4],)


@app.operator(
    reads=locate.by("country"),
    emits="country string, n bigint",
    state={"n": 0},
    service_s=0.0005,
)
def count(state: sj.State, country: str) -> Iterator[tuple[str, int]]:
    """Yield a country with its number of visits so far."""
    state["n"] += 1
    yield country, state["n"]


app.sink(count)
