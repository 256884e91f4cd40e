"""Rates from files: what is read, and what is refused in which words."""

import gzip

import pytest

from sojourn.errors import BadFile, BadWorkload
from sojourn.simulate.trace import read_rates
from sojourn.simulate.workload import Rates

THREE = Rates.steps((0, 6), (60, 12), (90, 0))


def written(tmp_path, content, name="rates.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        "0,6\n60,12\n90,0\n",
        "timestamp,rate\n0,6\n60,12\n90,0",
        "100,6\r\n160,12\r\n\r\n190,0\r\n",
        "1e3, 6\n1060, 12,with a remark\n1090, 0\n",
        "at,per_s\n2026-01-31T23:59:30,6\n2026-02-01 00:00:30,12\n2026-02-01T00:01:00Z,0\n",
        "rate,timestamp\n6,0\n12,60\n0,90\n",
        " Value ,x,Time\n6,, 2026-01-31 00:00\n12,,2026-01-31T00:01\n0,,2026-01-31T00:01:30\n",
        "epoch_ms,rps\n1700000000000,6\n1700000060000,12\n1700000090000,0\n",
        "\ufeffper_s,at_s\n6,1700000000\n12,1700000060\n0,1700000090\n",
        "2026-03-29T01:59:30+01:00,6\n2026-03-29T03:00:30+02:00,12\n2026-03-29T01:01:00Z,0\n",
    ],
    ids=[
        "plain",
        "header",
        "blank lines",
        "other columns",
        "dates",
        "rate first",
        "by name among others",
        "milliseconds",
        "byte order mark",
        "zones",
    ],
)
def test_times_and_rates_are_read_and_the_first_time_is_0(tmp_path, text):
    assert read_rates(written(tmp_path, text)) == THREE


def test_dates_without_a_zone_do_not_depend_on_that_of_the_machine(tmp_path, monkeypatch):
    """Where clocks were put forward at 2:00, this would be a minute."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    path = written(tmp_path, "2026-03-29T01:59:30,6\n2026-03-29T03:00:30,12\n")
    assert read_rates(path) == Rates.steps((0, 6), (3660, 12))


def test_a_file_may_be_gzipped(tmp_path):
    packed = gzip.compress(b"timestamp,rate\n0,6\n60,12\n90,0\n")
    assert read_rates(written(tmp_path, packed, "rates.csv.gz")) == THREE


def test_rates_may_be_scaled_and_pass_faster(tmp_path):
    path = written(tmp_path, "0,6\n60,12\n")
    assert read_rates(path, times=0.5, faster=10) == Rates.steps((0, 3), (6, 6))
    for wrong in ({"times": 0.0}, {"faster": -1.0}, {"times": float("nan")}):
        with pytest.raises(BadWorkload, match="write more than 0"):
            read_rates(path, **wrong)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "has no rows; write lines of timestamp,rate"),
        ("timestamp,rate\n", "has no rows; write lines of timestamp,rate"),
        ("0,6\n60\n", "rates.csv:2: '60' is not a time and a rate; write timestamp,rate"),
        ("t,rate\n0,6\n\n60,many\n", "rates.csv:4: '60,many' is not a time and a rate"),
        (
            "when,rate\n0,6\n",
            "rates.csv: in the header 'when,rate' no column is a time (timestamp",
        ),
        (
            "timestamp,count\n0,6\n",
            "rps, qps); name the columns timestamp and rate, or leave the header out",
        ),
        ("time,rate,value\n0,6,7\n", "'time,rate,value' rate and value are rates; keep one"),
        ("soon,6\n60,12\n", "in the header 'soon,6' no column is a time"),
        ("rate,timestamp\n6,0\n12\n", "rates.csv:3: '12' is not a time and a rate"),
        ("0,6\nlater,7\n", "rates.csv:2: 'later,7' is not a time and a rate"),
        ("0,6\n60,12\n30,6\n", "rates.csv: the times of a rate are not in order; sort them"),
        ("0,6\n60,-12\n", "rates.csv: the rate at 60.0 s is -12.0 per second"),
        ("0,6\n60,nan\n", "rates.csv: the rate at 60.0 s is nan per second"),
        ("nan,6\n", "rates.csv: the rates do not begin at 0 s"),
    ],
)
def test_rows_that_are_no_rates_are_refused(tmp_path, text, said):
    with pytest.raises(BadWorkload) as caught:
        read_rates(written(tmp_path, text))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("content", "name", "said"),
    [
        (b"0,6\n\xff\xfe,7\n", "rates.csv", "is not CSV: 'utf-8' codec can't decode"),
        (b"0," + b"6" * 200_000, "rates.csv", "is not CSV: field larger than"),
        (b"0,6\n", "rates.csv.gz", "cannot be read: Not a gzipped file"),
        (
            gzip.compress(b"0,6\n" * 999)[:-20],
            "rates.csv.gz",
            "is not CSV: Compressed file end",
        ),
        (
            gzip.compress(bytes(range(256)))[:10] + b"\xff" * 40,
            "rates.csv.gz",
            "is not CSV: Error -3 while decompressing",
        ),
    ],
    ids=["not text", "not CSV", "not packed", "cut off", "damaged"],
)
def test_files_that_are_no_text_are_refused(tmp_path, content, name, said):
    with pytest.raises(BadFile) as caught:
        read_rates(written(tmp_path, content, name))
    assert said in str(caught.value)


def test_a_file_that_is_missing_is_refused(tmp_path):
    with pytest.raises(BadFile, match=r"nowhere\.csv: cannot be read: No such file.*; check"):
        read_rates(tmp_path / "nowhere.csv")
