import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from sojourn.errors import NoJava
from sojourn.spark.driver.jvm.jars import resolve_jars
from sojourn.spark.driver.jvm.java import find_java

# An example that takes long on a busy machine is no failure: every test has its time limit.
settings.register_profile("sojourn", deadline=None)
settings.load_profile("sojourn")


def pytest_addoption(parser):
    """Let the contracts be tested on what is not in the tree."""
    for option, what in (("--policy", "policies"), ("--model", "station models")):
        parser.addoption(
            option,
            action="append",
            metavar="package.module:name",
            help=f"test the contract of {what} on this one alone; may be repeated",
        )


@pytest.fixture(scope="session")
def jars():
    """Return the real jars, as `make setup` has downloaded them."""
    try:
        find_java()
    except NoJava as error:
        pytest.skip(f"planning and simulating need no Java, and there is none: {error}")
    return resolve_jars()


@pytest.fixture
def short_folder():
    """Return a folder in which names of sockets are as short as they must be."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def pytest_configure():
    """Let commands that tests start hear Ctrl-C, also where a shell runs all this with `&`.

    A shell has what it puts into the background ignore SIGINT, and its children inherit that.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


class TookTooLong(BaseException):
    """The time limit of a test is over; no `except Exception` and no search may catch it."""


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer():
    """End a property at its time limit, too.

    Hypothesis would take the failure for a counterexample, and look for a simpler one: without
    a limit, because the alarm rings only once.
    """
    done = yield
    fails = signal.getsignal(signal.SIGALRM)

    def rings(number, frame):
        try:
            fails(number, frame)
        except pytest.fail.Exception as error:
            raise TookTooLong(str(error)) from None

    if callable(fails):
        signal.signal(signal.SIGALRM, rings)
    return done


# These compare numbers of millions of steps, or run whole commands again. Coverage would double
# their time, and sees nothing there that unit tests do not show it.
_UNCOVERED = ("tests/theory", "tests/test_documents.py", "test_part_whatever_happens.py")


def pytest_collection_modifyitems(items):
    """Leave out coverage where it costs most and tells nothing."""
    for item in items:
        if any(part in item.path.as_posix() for part in _UNCOVERED):
            item.add_marker(pytest.mark.no_cover)
