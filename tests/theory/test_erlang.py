"""Erlang's formulas against their definitions, summed with fifty digits."""

from itertools import islice

import mpmath
import pytest

from sojourn.queueing.erlang import blocking, delay_probability, waits_s

PROCESSORS = (1, 2, 3, 7, 12, 13, 33, 34, 100, 1_000, 10_000)
UTILISATIONS = (0.1, 0.3, 0.5, 0.8, 0.9, 0.99, 0.999, 0.9999)
# Beyond this a probability is nothing to a float, which rounds it to 0 before long.
NOTHING = 1e-290

# Offered load in Erlang at which one in a hundred is blocked, to the digits that printed
# tables give.
ONE_PERCENT = {
    1: "0.0101",
    2: "0.153",
    3: "0.455",
    4: "0.869",
    5: "1.36",
    10: "4.46",
    15: "8.11",
    20: "12.0",
    30: "20.3",
    40: "29.0",
    50: "37.9",
    100: "84.1",
}


def defined(erlangs, processors):
    """Return Erlang B and C as they are defined: shares of the terms aʲ/j!."""
    with mpmath.workdps(50):
        load, term = mpmath.mpf(erlangs), mpmath.mpf(1)
        total = mpmath.mpf(0)  # of all terms but the last
        for j in range(1, processors + 1):
            total += term
            term *= load / j
        queued = term * processors / (processors - load)
        return term / (total + term), queued / (total + queued)


@pytest.mark.parametrize("processors", PROCESSORS)
@pytest.mark.parametrize("utilisation", UTILISATIONS)
def test_ten_thousand_processors_keep_nine_digits(processors, utilisation):
    erlangs = utilisation * processors
    blocked, delayed = defined(erlangs, processors)
    spare = processors - mpmath.mpf(erlangs)
    expected = {
        blocking(erlangs, processors): blocked,
        delay_probability(erlangs, processors): delayed,
        next(waits_s(erlangs, 1.0, processors)): delayed / spare,
    }
    for ours, exact in expected.items():
        assert ours == pytest.approx(float(exact), rel=1e-9, abs=NOTHING)


@pytest.mark.parametrize("erlangs", [0.3, 7.15, 99.99, 2_000.5])
def test_a_long_recursion_loses_no_digits(erlangs):
    first = int(erlangs) + 1
    for steps, wait_s in enumerate(islice(waits_s(erlangs, 1.0, first), 301)):
        if steps % 50 == 0:
            _, delayed = defined(erlangs, first + steps)
            exact = delayed / (first + steps - mpmath.mpf(erlangs))
            assert wait_s == pytest.approx(float(exact), rel=1e-9, abs=NOTHING)


@pytest.mark.parametrize(("processors", "printed"), ONE_PERCENT.items())
def test_the_printed_tables_of_erlang_b_come_out(processors, printed):
    half_a_digit = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    low, high = float(printed) - half_a_digit, float(printed) + half_a_digit
    assert blocking(low, processors) < 0.01 < blocking(high, processors)


def test_nobody_is_blocked_where_nobody_comes():
    assert blocking(0.0, 3) == 0
    assert delay_probability(0.0, 3) == 0


def test_without_processors_everybody_is_blocked():
    assert blocking(0.0, 0) == blocking(5.0, 0) == 1


@pytest.mark.parametrize(("erlangs", "processors"), [(1e-300, 5), (5e-324, 1_000), (1, 10**6)])
def test_what_is_too_unlikely_for_a_float_is_nothing(erlangs, processors):
    assert 0 <= blocking(erlangs, processors) <= NOTHING
    assert 0 <= next(waits_s(erlangs, 1.0, processors)) <= NOTHING


def test_whoever_finds_one_processor_busy_waits():
    """With one processor Erlang C is the utilisation, the wait ρ/(1-ρ)."""
    for utilisation in UTILISATIONS:
        assert delay_probability(utilisation, 1) == pytest.approx(utilisation, rel=1e-12)
        expected_s = utilisation / (1 - utilisation)
        assert next(waits_s(utilisation, 1.0, 1)) == pytest.approx(expected_s, rel=1e-12)
