"""Ids of roots from one start to the next."""

import pytest

import sojourn as sj
from sojourn.errors import BadFile
from sojourn.service.state_folder import StateFolder
from sojourn.spark.driver.kafka.id_epoch import state_epoch
from sojourn.spark.driver.state.checkpoints import Checkpoints
from sojourn.spark.wire.headers import record_of


def started(folder):
    """Return the epoch of a start, as an engine asks for it."""
    app, kept = sj.App("shop"), Checkpoints(folder)
    epoch = state_epoch(folder, goes_on=kept.check(app, "cluster"))
    kept.keep(app, "cluster")
    return epoch


def test_an_epoch_lasts_until_a_fresh_start(tmp_path):
    with StateFolder(tmp_path, "shop") as state:
        first = started(tmp_path)
        assert started(tmp_path) == first
        state.forget()
        again = started(tmp_path)
    assert len({first, again, ""}) == 3


def test_a_start_that_got_no_further_leaves_no_epoch(tmp_path):
    never = state_epoch(tmp_path, goes_on=False)
    assert started(tmp_path) not in {never, ""}


def test_a_state_whose_epoch_is_gone_is_refused(tmp_path):
    """Ids of its roots would be others, and what is repeated would count as new."""
    started(tmp_path)
    (tmp_path / "epoch").unlink()
    with pytest.raises(BadFile, match=r"epoch: cannot be read: .*; restore it, or start"):
        started(tmp_path)


def test_a_producer_that_gives_ids_keeps_them():
    def read(*headers):
        return record_of(
            headers, b"", stream="lines", topic="lines", partition=0, offset=7,
            timestamp_s=0.0, mark="m", weight=lambda: 9,
        )  # fmt: skip

    order = read(("sojourn-id", b"order-1"))
    assert order.name == order.root == "order-1"
    assert order.traced == 9  # so it is followed as any other root
    assert read().name == read().root == "lines@m/0/7"
    assert read(("sojourn-id", b"r.a.0"), ("sojourn-root", b"r")).traced == 0
