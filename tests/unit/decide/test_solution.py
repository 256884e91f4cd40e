from sojourn.decide.solution import Solution


def test_the_processors_of_a_solution_are_those_of_its_operators():
    solution = Solution(
        name="vld", model="mmk", allocation={"a": 3, "b": 4}, mean_s=1.0, reason="", least=7
    )
    assert solution.processors == 7
