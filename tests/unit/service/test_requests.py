"""What may be asked of a running application, and what is refused."""

from functools import partial

import pytest

from sojourn.errors import BadInput, EngineError
from sojourn.service.requests import answer
from sojourn.service.status import status, to_json
from sojourn.simulate.real_time import RealTimeSimulator
from supervised import Jump, begun


def asked(running, request):
    return answer(running, partial(status, running), request)


def test_requests_do_what_they_say():
    running = begun(Jump())
    ask = partial(answer, running, partial(status, running))
    assert "a 4 -> 6" in ask({"ask": "scale", "allocation": {"a": 6}})["said"]
    assert "active" in ask({"ask": "resume"})["said"]
    assert "paused" in ask({"ask": "pause"})["said"]
    target = {"statistic": "p95", "seconds": 2.0}
    assert "p95 ≤ 2 s, 9" in ask({"ask": "set", "target": target, "max_processors": 9})["said"]
    assert ask({"ask": "status"}) == to_json(status(running))


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({}, "None is not a request; use scale, pause"),
        ({"ask": ["x"]}, "is not a request"),
        ({"ask": "scale"}, "None is not an allocation"),
        ({"ask": "scale", "allocation": [1]}, "is not an allocation"),
        ({"ask": "scale", "allocation": {"a": 1.5}}, "1.5 is not a valid number of processors"),
        ({"ask": "set"}, "nothing to set"),
        ({"ask": "set", "placement": 3}, "3 is not the name of a placer"),
        ({"ask": "set", "target": "p95"}, "is not a target"),
        ({"ask": "set", "target": {"statistic": "p95"}}, "is not a target"),
        ({"ask": "set", "target": {"statistic": ["p"], "seconds": 1}}, "cannot be a target"),
        ({"ask": "set", "target": {"statistic": "p95", "seconds": "1"}}, "not a latency"),
        ({"ask": "set", "max_processors": 0}, "0 is not a valid number of processors"),
        ({"ask": "set", "max_processors": True}, "True is not a valid number of processors"),
        ({"ask": "set", "max_processors": "9"}, "'9' is not a valid number of processors"),
    ],
)
def test_any_other_request_is_refused(request_, said):
    with pytest.raises(BadInput, match=said):
        asked(begun(Jump()), request_)


def test_its_kafka_is_told_to_who_reads_dead_letters():
    told = asked(begun(Jump()), {"ask": "kafka"})
    assert told == {"clients": {"bootstrap.servers": "127.0.0.1:9092"}}


def test_where_there_is_no_kafka_the_engine_is_named():
    running = begun(Jump(), engine=RealTimeSimulator())
    with pytest.raises(
        EngineError, match="the simulator does not use Kafka, so there are no dead letters"
    ):
        asked(running, {"ask": "kafka"})
