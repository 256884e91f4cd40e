"""One broker for all tests that neither stop nor configure it."""

import pytest

from sojourn.spark.driver.kafka.broker import Broker
from spark.emptied import emptied


@pytest.fixture(scope="session")
def kafka(jars):
    """Run the broker, which lets in everybody."""
    with Broker(jars=jars, secured=False) as running:
        yield running


@pytest.fixture(scope="module")
def broker(kafka):
    """Give a module the broker, without topics and groups of others."""
    with emptied(kafka):
        yield kafka


@pytest.fixture(scope="module")
def servers(broker):
    """Return where clients reach the broker."""
    return broker.bootstrap_servers
