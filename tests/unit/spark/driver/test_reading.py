"""Whether records that wait in Kafka are read, as users are told."""

from sojourn.spark.driver.reading import Reading


class Looks:
    """One partition of a part, looked at every second."""

    def __init__(self):
        self.reading, self.now_s = Reading(), 0.0

    def __call__(self, position, end, times=1, **told):
        for _ in range(times):
            self.reading.saw(
                self.now_s, {"split": {"lines": {0: position}}}, {"lines": {0: end}}, **told
            )
            self.now_s += 1.0
        return self.reading


def test_what_waited_at_the_start_is_waited_for_until_it_is_read():
    look = Looks()
    assert look(0, 100).waits_for == "waiting for the first records of lines[0]"
    assert look(0, 120, times=30).waits_for
    assert look.reading.stands_still
    assert look(1, 120).waits_for == ""
    assert not look.reading.stands_still


def test_an_application_whose_first_records_come_later_is_starting_if_they_are_not_read():
    look = Looks()
    assert look(0, 0, times=60).waits_for == ""
    assert look(0, 1, times=5).waits_for == ""  # it is on its way
    assert look(0, 1, times=2).waits_for == "waiting for the first records of lines[0]"
    assert look.reading.notices == ()
    assert look(1, 1).waits_for == ""


def test_records_that_are_no_longer_read_are_a_notice():
    look = Looks()
    look(0, 100)
    look(100, 100)
    assert look(100, 200, times=6).notices == ()
    (notice,) = look(100, 300, times=2).notices
    assert notice == (
        "split: records wait in lines[0], and none has been read for more than 5 s"
    )
    assert look.reading.waits_for == ""
    assert look(150, 300).notices == ()


def test_marks_of_transactions_at_the_end_are_no_records():
    look = Looks()
    look(90, 100)
    assert look(97, 100, times=60).notices == ()
    assert not look.reading.stands_still


def test_what_was_deleted_before_it_was_read_does_not_wait():
    look = Looks()
    assert not look(0, 100, times=60, oldest={"lines": {0: 100}}).stands_still


def test_a_part_that_takes_nothing_because_too_much_waits_inside_is_told_elsewhere():
    look = Looks()
    look(0, 100)
    look(50, 1000)
    assert look(50, 1000, times=60, closed=["split"]).notices == ()
    assert look(50, 1000, times=7).notices


def test_the_time_without_a_broker_does_not_count():
    look = Looks()
    look(0, 100)
    look(50, 100)
    look.reading.pause()
    look.now_s += 600.0
    assert look(50, 100).notices == ()
    assert look(50, 100, times=7).notices


def test_many_partitions_are_not_all_named():
    reading = Reading()
    reading.saw(0.0, {"split": {"lines": {}}}, {"lines": dict.fromkeys(range(5), 100)})
    assert reading.waits_for == (
        "waiting for the first records of lines[0], lines[1], lines[2] and 2 more"
    )
