import pytest

from sojourn.errors import NoJava
from sojourn.spark.java import find_java
from sojourn.spark.jvm import resolve_jars


@pytest.fixture(scope="session")
def jars():
    """Return the real jars, as `make setup` has downloaded them."""
    try:
        find_java()
    except NoJava as error:
        pytest.skip(f"planning and simulating need no Java, and there is none: {error}")
    return resolve_jars()
