"""Tweets as the JSON text that Twitter's streaming API sent: real ones, or made up.

A tweet has `id`, `created_at`, `text`, and if it is known who wrote it `user`. As in the real
stream there are also notices of deleted tweets, which have no text.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from sojourn_papers.apps.data import data_file

_ROWS = 1000
_DATE = "%a %b %d %H:%M:%S %z %Y"
_SUBJECTS = ("the storm", "our dinner", "my new phone", "this city", "the game", "politics")
_VERBS = ("is", "was", "is not", "will never be", "has been", "looks")
_MOODS = ("awesome", "terrible", "a disaster", "so good", "sad", "fun", "okay", "happy", "late")
_ENDS = ("", " :)", " :(", " &amp; more", " #news", " @friend what now?", " …", "!!!")
_FOREIGN = ("Het regent al de hele dag", "Mañana vamos a la playa", "Schönes Wetter heute")


def tweets(file: str, seed: int) -> Iterator[tuple[str]]:
    """Yield the tweets of a data file again and again, made up ones where it is missing.

    *file* is `tweets/….parquet`. The first one depends on the *seed*.
    """
    path = data_file(file)
    texts = made_up(seed) if path is None else _of_file(path, seed)
    return ((text,) for text in texts)


def made_up(seed: int) -> Iterator[str]:
    """Yield tweets that nobody wrote: with moods, links, retweets, and other languages."""
    drawn = Random(seed)  # noqa: S311 - not for secrets
    number = 0
    while True:
        number += 1
        if drawn.random() < 0.02:
            yield json.dumps({"delete": {"status": {"id": number}}})
            continue
        text = ", ".join(
            f"{drawn.choice(_SUBJECTS)} {drawn.choice(_VERBS)} {drawn.choice(_MOODS)}"
            for _ in range(drawn.randint(1, 3))
        )
        text = drawn.choice(_FOREIGN) if drawn.random() < 0.1 else text + drawn.choice(_ENDS)
        if drawn.random() < 0.4:
            # few links are in many tweets, as trending ones are
            text += f" http://t.co/{int(drawn.paretovariate(0.7)):08x}"
        if drawn.random() < 0.1:
            text = f"RT @somebody: {text}"
        user = {"screen_name": f"user{drawn.randrange(50)}"}
        date = f"Mon Mar 24 12:{number // 60 % 60:02}:{number % 60:02} +0000 2014"
        yield json.dumps({"id": number, "created_at": date, "text": text, "user": user})


def _of_file(path: Path, seed: int) -> Iterator[str]:
    from pyarrow import parquet  # noqa: PLC0415 - optional

    table = parquet.read_table(path)
    first = Random(seed).randrange(len(table))  # noqa: S311
    while True:
        for part in (table.slice(first), table.slice(0, first)):
            for batch in part.to_batches(max_chunksize=_ROWS):
                yield from map(_tweet, batch.to_pylist())


def _tweet(row: dict[str, Any]) -> str:
    """Return a row as JSON; the collections name their columns differently."""
    tweet = {
        "id": row.get("id", row.get("tweet_id")),
        "created_at": row["ts"].strftime(_DATE),
        "text": row["text"],
    }
    if "screen_name" in row:
        tweet["user"] = {"screen_name": row["screen_name"]}
    return json.dumps(tweet, ensure_ascii=False)
