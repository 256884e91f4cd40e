"""What functions raise, as it is told."""

from sojourn.spark.host.error_log import ErrorLog
from sojourn.spark.processor.operator_job import of_application
from sojourn.spark.processor.processor import described
from sojourn.spark.wire.record import Record


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is
        return described(error)
    raise AssertionError("nothing was raised")


def divide():
    return 1 / 0


def chained():
    try:
        divide()
    except ZeroDivisionError as error:
        raise ValueError("no") from error


def test_the_traceback_is_that_of_the_users_code():
    error, traceback = raised(divide)
    assert error == "ZeroDivisionError: division by zero"
    assert traceback.splitlines()[-1] == error
    assert "return 1 / 0" in traceback
    split = of_application("unit.spark.host.application:app split")
    error, traceback = raised(lambda: list(split(Record("id", b"no JSON", "lines"))))
    assert "BadRecord" in error
    assert "payload.py" not in traceback  # our own frames say nothing to its author


def test_what_it_came_of_is_told_too():
    _, traceback = raised(chained)
    assert "ZeroDivisionError" in traceback
    assert traceback.endswith("ValueError: no")


def test_what_is_too_long_is_cut_and_the_end_is_there():
    def speak():
        raise ValueError("x" * 100_000 + "!")

    error, traceback = raised(speak)
    assert (len(error), len(traceback)) == (2 << 10, 8 << 10)
    assert traceback.endswith("x!")
    assert error.startswith("ValueError: x")


def test_kinds_of_errors_are_bounded():
    log = ErrorLog(most_kinds=2)
    told = [log.seen(f"ValueError: {n}", "", "") for n in range(5)]
    assert told == ["ValueError: 0", "ValueError: 1", "", "", ""]
    assert log.repeated(0.0) == []
    assert log.repeated(61.0) == ["3 errors of other kinds"]
    assert log.repeated(200.0) == []
