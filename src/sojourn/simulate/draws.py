"""Random draws of a simulation (service times, gaps, keys), and the order of queues."""

import numpy as np
from numba import njit

EXPONENTIAL, CONSTANT, GAMMA, LOGNORMAL, HYPEREXPONENTIAL, MEASURED = range(6)
RENEWAL, UNIFORM, ON_OFF, BATCHES = range(4)
SHARED, ROUND_ROBIN, BY_KEY, SHORTEST = range(4)
ABSENT, IDLE, BUSY = range(3)
NOBODY = -1


@njit(cache=True)
def service_s(operator, samples_s, rng):
    if operator.service == EXPONENTIAL:
        return operator.a * rng.standard_exponential()
    if operator.service == CONSTANT:
        return operator.a
    if operator.service == GAMMA:
        return operator.b * rng.standard_gamma(operator.a)
    if operator.service == LOGNORMAL:
        return np.exp(operator.a + operator.b * rng.standard_normal())
    if operator.service == HYPEREXPONENTIAL:
        mean_s = operator.a if rng.random() < operator.c else operator.b
        return mean_s * rng.standard_exponential()
    number = operator.end_sample - operator.first_sample
    return operator.a * samples_s[operator.first_sample + int(rng.random() * number)]


@njit(cache=True)
def gap(stream, rng):
    """Return the next gap of a stream, of mean 1."""
    if stream.gaps == RENEWAL:
        if stream.a == 1.0:
            return rng.standard_exponential()
        if stream.a == 0.0:
            return 1.0
        return stream.a * rng.standard_gamma(1.0 / stream.a)
    if stream.gaps == UNIFORM:
        return stream.a + (stream.b - stream.a) * rng.random()
    if stream.gaps == BATCHES:
        return stream.a * rng.standard_exponential()
    # on for `a` on average, off for `b`; while on, gaps are shorter in proportion
    passed = 0.0
    while True:
        after = rng.standard_exponential() * stream.a / (stream.a + stream.b)
        if after <= stream.left:
            stream.left -= after
            return passed + after
        passed += stream.left + stream.b * rng.standard_exponential()
        stream.left = stream.a * rng.standard_exponential()


@njit(cache=True)
def next_arrival_s(stream, rates, rng):
    """Return the time of the next arrival of a stream, infinity if there is none.

    Gaps are drawn with mean 1 and scaled by the rate at each moment. A Poisson stream thereby
    becomes an exact Poisson stream with a changing rate.
    """
    left, at_s, i, last = gap(stream, rng), stream.at_s, stream.rate, stream.end_rate - 1
    while i < last:
        start_s, end_s = rates[i].at_s, rates[i + 1].at_s
        slope = 0.0
        if end_s > start_s:
            slope = (rates[i + 1].per_s - rates[i].per_s) / (end_s - start_s)
        here = rates[i].per_s + slope * (at_s - start_s)
        passes = (here + rates[i].per_s + slope * (end_s - start_s)) / 2 * (end_s - at_s)
        if left <= passes and passes > 0:
            # The area under a linear rate equals the gap: a quadratic equation, solved in the
            # form that is stable for tiny slopes.
            root = np.sqrt(max(0.0, here * here + 2 * slope * left))
            if here + root > 0:  # highly variable gaps may be 0
                at_s = min(end_s, at_s + 2 * left / (here + root))
            break
        left -= passes
        at_s = end_s
        i += 1
    else:
        if rates[last].per_s <= 0:
            return np.inf
        at_s += left / rates[last].per_s
    stream.rate = i
    stream.at_s = at_s
    return at_s


@njit(cache=True)
def draw_key(operator, keys, rng):
    """Return a random key, drawn by weight with the alias method."""
    number = operator.end_key - operator.first_key
    if number == 0:
        return 0
    key = int(rng.random() * number)
    drawn = keys[operator.first_key + key]
    return key if rng.random() < drawn.chance else drawn.other


@njit(cache=True)
def queue_for(operator, key, slots):
    """Return the slot whose queue a record joins, according to the operator's dispatch."""
    first, number = operator.first_slot, operator.processors
    if operator.dispatch == SHARED:
        return first
    if operator.dispatch == ROUND_ROBIN:
        turn = operator.turn % number
        operator.turn = turn + 1
        return first + turn
    if operator.dispatch == BY_KEY:
        # a multiplicative hash, so that neighbouring keys are scattered over the processors
        return first + ((key * 2654435761) % 4294967296) % number
    best, least = first, slots[first].length + (slots[first].state != IDLE)
    for slot in range(first + 1, first + number):
        length = slots[slot].length + (slots[slot].state != IDLE)
        if length < least:
            best, least = slot, length
    return best


@njit(cache=True)
def place_hot(operator, rng):
    """Return the position of a record in the order of arrival, negative for the hottest key.

    The other keys are assumed to be so many that no two records of one key are present at a
    time.
    """
    operator.turn += 1
    if rng.random() < operator.hottest:
        operator.hot_arrived += 1
        return -operator.turn
    return operator.turn


@njit(cache=True)
def next_of(operator, queue, records):
    """Remove the next record from a queue, and return it; `NOBODY` if none can be served.

    Like the desk of a host, take the earliest record whose key is not in service.
    """
    hot = operator.hot_length > 0 and operator.hot_busy == 0
    if hot and queue.length > 0:
        hot = -records[operator.hot_head].key < records[queue.head].key
    if hot:
        first = operator.hot_head
        operator.hot_head = records[first].next
        operator.hot_length -= 1
        operator.hot_busy = 1
        return first
    if queue.length == 0:
        return NOBODY
    first = queue.head
    queue.head = records[first].next
    queue.length -= 1
    return first
