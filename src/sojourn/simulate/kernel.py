"""The compiled event loop.

It is one long function on purpose: passing the whole world to a compiled function costs more
than simulating a record, so the functions it calls only get single records or two arrays.
"""

import numpy as np
from numba import njit

from sojourn.simulate.draws import (
    ABSENT,
    BATCHES,
    BUSY,
    IDLE,
    NOBODY,
    SHARED,
    draw_key,
    next_arrival_s,
    next_of,
    place_hot,
    queue_for,
    service_s,
)

# Kinds of events. An event is encoded as four times an index, plus its kind. The index is that
# of a stream (ARRIVE), a record (DELIVER, FINISH) or an operator (WAKE).
ARRIVE, DELIVER, FINISH, WAKE = range(4)
# Reasons for which the loop returns.
REACHED, WRITTEN, MORE_ROOM = range(3)

# Indices of the single counters in `World.tally`.
EVENTS, FREE_RECORD, FREE_ROOT, RECORDS, ROOTS, WRITTEN_ROOTS, DONE, VISITS = range(8)


@njit(cache=True)
def push(event_s, event, number, at_s, what):
    """Add an event to a heap of *number* events, and return their new number."""
    i = number
    while i > 0:
        above = (i - 1) >> 1
        if event_s[above] <= at_s:
            break
        event_s[i], event[i] = event_s[above], event[above]
        i = above
    event_s[i], event[i] = at_s, what
    return number + 1


@njit(cache=True)
def pop(event_s, event, number):
    """Remove the first event from a heap of *number* events, and return their new number."""
    number -= 1
    at_s, what = event_s[number], event[number]
    i = 0
    while 2 * i + 1 < number:
        below = 2 * i + 1
        if below + 1 < number and event_s[below + 1] < event_s[below]:
            below += 1
        if event_s[below] >= at_s:
            break
        event_s[i], event[i] = event_s[below], event[below]
        i = below
    event_s[i], event[i] = at_s, what
    return number


@njit(cache=True)
def advance(world, rng, until_s, most_roots, room):  # noqa: C901, PLR0912, PLR0915 - see above
    """Simulate until *until_s*, or until *most_roots* have completed in total.

    Return earlier if the buffer of completed roots is full, or if arrays have less than *room*
    left, the maximum of records that one event may add. A WAKE may start all processors, so
    the arrays of events need room for one event of each as well.
    """
    tally, event_s, event = world.tally, world.event_s, world.event
    records, roots, operators, slots = world.records, world.roots, world.operators, world.slots
    targets, streams, entries, rates = world.targets, world.streams, world.entries, world.rates
    keys, samples_s, arrived, written = (
        world.keys,
        world.samples_s,
        world.arrived,
        world.written,
    )
    children, sample_every = world.children, world.sample_every[0]
    window_s, bin_s = world.window[0], world.window[1]
    events, free_record, free_root = tally[EVENTS], tally[FREE_RECORD], tally[FREE_ROOT]
    in_flight, roots_in_flight = tally[RECORDS], tally[ROOTS]
    done_before, done = tally[DONE], 0
    event_room = room + slots.shape[0]
    now_s, why = world.clock_s[0], REACHED
    while events > 0 and event_s[0] <= until_s:
        if tally[WRITTEN_ROOTS] >= written.shape[0] or done_before + done >= most_roots:
            why = WRITTEN
            break
        if (
            records.shape[0] - in_flight < room
            or roots.shape[0] - roots_in_flight < room
            or event_s.shape[0] - events < event_room
        ):
            why = MORE_ROOM
            break
        now_s = event_s[0]
        kind, who = event[0] & 3, event[0] >> 2
        events = pop(event_s, event, events)
        number = 0  # of records in `children` that are delivered at the end of the iteration
        if kind == FINISH:
            record = records[who]
            operator, slot_id = operators[record.operator], record.slot
            slot, root_id = slots[slot_id], record.root
            root = roots[root_id]
            if operator.hottest > 0 and record.key < 0:
                operator.hot_busy = 0
            tally[VISITS] += 1
            slot.served += 1
            slot.untimed += 1
            if slot.untimed >= sample_every:
                slot.untimed = 0
                took_s = now_s - record.started_s
                waited_s = record.started_s - record.queued_s
                slot.sampled += 1
                slot.service_s += took_s
                slot.service_ss += took_s * took_s
                slot.wait_s += waited_s
                slot.wait_ss += waited_s * waited_s
            root.sum_s += now_s - record.sent_s
            root.open -= 1
            # put the record on the free list; `record` may be reused for a child below
            record.next, free_record = free_record, who
            in_flight -= 1
            # draw the children: first their operators, then a free record for each
            if operator.one_of:
                drawn = rng.random()
                for i in range(operator.first_target, operator.end_target):
                    drawn -= targets[i].mean
                    if drawn < 0:
                        children[0], number = targets[i].operator, 1
                        break
            else:
                for i in range(operator.first_target, operator.end_target):
                    mean = targets[i].mean
                    if operator.spread:
                        copies = rng.poisson(mean)
                    else:
                        copies = int(mean)
                        if copies < mean and rng.random() < mean - copies:
                            copies += 1
                    for _ in range(min(copies, room - number)):
                        children[number] = targets[i].operator
                        number += 1
            for i in range(number):
                child_id = free_record
                child = records[child_id]
                free_record = child.next
                in_flight += 1
                child.root, child.operator, child.sent_s = root_id, children[i], now_s
                children[i] = child_id
            root.open += number
            if root.open == 0:  # the tree is complete
                line = written[tally[WRITTEN_ROOTS]]
                line.birth_s = root.birth_s
                line.completion_s = now_s - root.birth_s
                line.sum_s = root.sum_s
                tally[WRITTEN_ROOTS] += 1
                done += 1
                root.next, free_root = free_root, root_id
                roots_in_flight -= 1
            # the processor leaves, takes the next record, or becomes idle
            shared = operator.dispatch == SHARED
            queue = slots[operator.first_slot] if shared else slot
            next_id = NOBODY
            if shared and operator.surplus > 0:
                operator.surplus -= 1
                slot.state = ABSENT
            elif not shared and slot_id - operator.first_slot >= operator.processors:
                slot.state = ABSENT
            else:
                if now_s >= operator.paused_until_s:
                    next_id = next_of(operator, queue, records)
                if next_id == NOBODY:
                    slot.state = IDLE
                    if shared:
                        slots[operator.first_slot + operator.idle].idle = slot_id
                        operator.idle += 1
            if next_id != NOBODY:
                record = records[next_id]
                record.slot, record.started_s = slot_id, now_s
                ends_s = now_s + service_s(operator, samples_s, rng)
                events = push(event_s, event, events, ends_s, 4 * next_id + FINISH)
        elif kind == ARRIVE:
            stream = streams[who]
            copies = int(stream.a) if stream.gaps == BATCHES else 1
            for _ in range(copies):
                # draw the operator that the root enters
                i = stream.first_entry
                if stream.end_entry - i > 1:
                    drawn = rng.random() - entries[i].share
                    while drawn >= 0 and i < stream.end_entry - 1:
                        i += 1
                        drawn -= entries[i].share
                root_id, child_id = free_root, free_record
                root, child = roots[root_id], records[child_id]
                free_root, free_record = root.next, child.next
                roots_in_flight += 1
                in_flight += 1
                root.birth_s, root.sum_s, root.open = now_s, 0.0, 1
                child.root, child.operator, child.sent_s = root_id, entries[i].operator, now_s
                children[number] = child_id
                number += 1
            next_s = next_arrival_s(stream, rates, rng)
            if next_s < np.inf:
                events = push(event_s, event, events, next_s, 4 * who + ARRIVE)
        elif kind == DELIVER:
            children[0], number = who, 1
        else:  # WAKE, after a pause or a change of processors
            operator = operators[who]
            first = operator.first_slot
            shared = operator.dispatch == SHARED
            if now_s >= operator.paused_until_s:
                for turn in range(operator.idle if shared else operator.processors):
                    queue = slots[first] if shared else slots[first + turn]
                    if not shared and queue.state != IDLE:
                        continue
                    next_id = next_of(operator, queue, records)
                    if next_id == NOBODY:
                        continue
                    slot_id = first + turn
                    if shared:
                        operator.idle -= 1
                        slot_id = slots[first + operator.idle].idle
                    record = records[next_id]
                    slots[slot_id].state = BUSY
                    record.slot, record.started_s = slot_id, now_s
                    ends_s = now_s + service_s(operator, samples_s, rng)
                    events = push(event_s, event, events, ends_s, 4 * next_id + FINISH)
        # deliver records: into the transfer, to an idle processor, or into a queue
        for i in range(number):
            child_id = children[i]
            record = records[child_id]
            operator = operators[record.operator]
            if kind != DELIVER and operator.wire_s > 0:
                there_s = now_s + operator.wire_s
                events = push(event_s, event, events, there_s, 4 * child_id + DELIVER)
                continue
            record.queued_s = now_s
            keyed = operator.hottest > 0
            if keyed:
                record.key = place_hot(operator, rng)
            else:
                record.key = draw_key(operator, keys, rng)
            hot = keyed and record.key < 0
            bin_ = int((now_s - window_s) / bin_s)
            arrived[record.operator, min(bin_, arrived.shape[1] - 1)] += 1
            queue_id, slot_id = queue_for(operator, record.key, slots), NOBODY
            queue = slots[queue_id]
            if now_s >= operator.paused_until_s:
                if operator.dispatch != SHARED:
                    if queue.state == IDLE:
                        slot_id = queue_id
                elif operator.idle > 0 and not (hot and operator.hot_busy):
                    operator.idle -= 1
                    slot_id = slots[operator.first_slot + operator.idle].idle
            if slot_id != NOBODY:
                slots[slot_id].state = BUSY
                if hot:
                    operator.hot_busy = 1
                record.slot, record.started_s = slot_id, now_s
                ends_s = now_s + service_s(operator, samples_s, rng)
                events = push(event_s, event, events, ends_s, 4 * child_id + FINISH)
            elif hot:
                record.next = NOBODY
                if operator.hot_length == 0:
                    operator.hot_head = child_id
                else:
                    records[operator.hot_tail].next = child_id
                operator.hot_tail = child_id
                operator.hot_length += 1
            else:
                record.next = NOBODY
                if queue.length == 0:
                    queue.head = child_id
                else:
                    records[queue.tail].next = child_id
                queue.tail = child_id
                queue.length += 1
    tally[EVENTS], tally[FREE_RECORD], tally[FREE_ROOT] = events, free_record, free_root
    tally[RECORDS], tally[ROOTS] = in_flight, roots_in_flight
    tally[DONE] += done
    world.clock_s[0] = max(now_s, until_s) if why == REACHED and until_s < np.inf else now_s
    return why
