from sojourn.act.policy import policy
from sojourn.decide.plan import Target
from unit.act.policy.turns import CHAIN, Turns


def test_nothing_is_ever_changed_whatever_happens():
    turns = Turns(
        policy("static", target=Target("mean", 1)), CHAIN, {"a": 2, "b": 3}, every_s=60
    )
    loads = (0.0, 1.0, 1000.0)
    for decision in [turns.turn(per_s, backlog={"a": 10**9}) for per_s in loads]:
        assert decision.kind == "hold"
        assert decision.after == {"a": 2, "b": 3}
        assert decision.reason == "static: the allocation never changes"


def test_what_could_not_be_measured_is_told():
    turns = Turns(
        policy("static", target=Target("mean", 1)), CHAIN, {"a": 2, "b": 3}, every_s=60
    )
    assert turns.unusable("nobody answered").reason.endswith("nobody answered")
