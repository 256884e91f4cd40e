"""What only some engines can do, asked of one that cannot."""

import pytest

from sojourn import engine
from sojourn.engine import Health, KafkaAccess
from sojourn.errors import EngineError
from sojourn.simulate.simulator import Simulator


def test_what_an_engine_cannot_do_is_refused_with_its_name():
    simulator = Simulator()
    with pytest.raises(EngineError, match="the simulator does not use Kafka"):
        engine.kafka(simulator)
    with pytest.raises(EngineError, match="the simulator cannot finish records in progress"):
        engine.drain(simulator, print)


def test_of_an_engine_that_tells_nothing_nothing_is_wrong():
    simulator = Simulator()
    assert engine.health(simulator) == Health()
    assert engine.uncommitted(simulator) == 0


def test_secrets_of_clients_are_not_shown():
    assert "hunter2" not in repr(KafkaAccess(servers="k:9", clients={"password": "hunter2"}))
