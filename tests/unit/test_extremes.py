"""Sound but absurd topologies: every question gets an answer or one of our errors, in time."""

from contextlib import suppress

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sojourn as sj
from sojourn.model.station import names

sizes = st.sampled_from([0.0, 1e-18, 1e-12, 1e-3, 0.3, 1.0, 7.0, 1e3, 1e9, 1e18])
scvs = st.sampled_from([0.0, 1e-18, 1e-6, 0.5, 1.0, 30.0, 1e6, 1e18])


@st.composite
def absurd(draw):
    """Return a topology of wild numbers, or refuse the draw."""
    count = draw(st.integers(1, 3))
    operators = []
    for i in range(count):
        targets = draw(st.lists(st.integers(0, count - 1), unique=True, max_size=count))
        operators.append(
            sj.Operator(
                name=f"o{i}",
                service_s=draw(sizes),
                service_scv=draw(scvs),
                arrival_scv=draw(st.none() | scvs),
                transfer_s=draw(sizes),
                speed=draw(st.sampled_from([1e-3, 1.0, 1e3])),
                dispatch=draw(st.sampled_from(["shared", "round_robin"])),
                emits={f"o{j}": draw(sizes) * (0.01 if j <= i else 1.0) for j in targets},
            )
        )
    return sj.Topology(
        name="absurd",
        arrivals=(sj.Arrival(name="in", per_s=draw(sizes), scv=draw(scvs), into="o0"),),
        operators=tuple(operators),
    )


@st.composite
def sound(draw):
    """Return an absurd topology that is sound all the same."""
    for _ in range(20):
        with suppress(sj.SojournError):
            return draw(absurd())
    return sj.Topology(
        name="plain",
        arrivals=(sj.Arrival(name="in", per_s=1, into="o0"),),
        operators=(sj.Operator(name="o0", service_s=1),),
    )


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    topology=sound(),
    model=st.sampled_from(names()),
    processors=st.sampled_from([1, 5, 50, 5000]),
    statistic=st.sampled_from(["mean", "p50", "p99"]),
    seconds=st.sampled_from([1e-9, 0.1, 1.0, 1e3, 1e15]),
)
def test_every_question_is_answered(topology, model, processors, statistic, seconds):
    """What an on-call engineer must never see is a traceback, or no answer."""
    with suppress(sj.SojournError):
        plan = sj.assign(topology, processors, model=model)
        assert plan.processors <= processors
        prediction = sj.predict(topology, plan.allocation, model=model)
        assert prediction.mean_s >= 0
        sj.explain(topology, plan.allocation, model=model)
    with suppress(sj.SojournError):
        target = sj.Target(statistic, seconds)
        plan = sj.minimise(topology, target, model=model, most=100_000)
        sj.headroom(topology, plan.allocation, target, model=model)
