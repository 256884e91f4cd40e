"""Sessions end, whatever has become of Java before."""

import pytest
from pyspark import SparkContext

from sojourn.spark.driver.jvm.session import end_session, new_session

pytestmark = pytest.mark.spark


def test_a_session_whose_java_was_terminated_ends_and_another_can_begin(jars):
    """Service managers terminate all processes of a service at once."""
    first = new_session("first", jars=jars, slots=1)
    java = SparkContext._gateway.proc  # noqa: SLF001 - as PySpark keeps it
    java.terminate()
    java.wait(60)
    end_session(first)
    second = new_session("second", jars=jars, slots=1)
    try:
        assert second.range(3).count() == 3
    finally:
        end_session(second)
