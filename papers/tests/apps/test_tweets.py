import json
from itertools import islice

import pytest

from sojourn_papers.apps.tweets import tweets

FILES = ["tweets/crisislex_t6_60k.parquet", "tweets/congress_tweets_160k.parquet"]


def some(file, seed, number=300):
    return list(islice(tweets(file, seed), number))


@pytest.mark.usefixtures("no_data")
def test_made_up_tweets_depend_on_the_seed_alone():
    assert some(FILES[0], 1) == some(FILES[0], 1) != some(FILES[0], 2)


@pytest.mark.usefixtures("no_data")
def test_made_up_tweets_are_of_every_kind():
    read = [json.loads(text) for (text,) in some(FILES[0], 1)]
    texts = [tweet["text"] for tweet in read if "text" in tweet]
    assert 0 < len(texts) < len(read), "some are notices of deletions"
    for sign in ("RT @", "http://t.co/", ":)", "&amp;"):
        assert 0 < sum(sign in text for text in texts) < len(texts)


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize("file", FILES)
def test_real_tweets_depend_on_the_seed_alone(file):
    assert some(file, 1) == some(file, 1) != some(file, 2)
    tweet = json.loads(some(file, 1, 1)[0][0])
    assert {"id", "created_at", "text"} <= tweet.keys()


def test_a_file_begins_anew_after_its_end(tmp_path, monkeypatch):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    import datetime as dt  # noqa: PLC0415

    now = dt.datetime(2014, 3, 24, tzinfo=dt.UTC)
    rows = [{"tweet_id": n, "ts": now, "text": f"text {n}"} for n in range(3)]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "few.parquet")
    monkeypatch.setenv("SOJOURN_DATA", str(tmp_path))
    ids = [json.loads(text)["id"] for (text,) in islice(tweets("few.parquet", 1), 7)]
    assert sorted(ids[:3]) == [0, 1, 2]
    assert ids[3:6] == ids[:3]
