from dataclasses import replace

from sojourn.measure.counters import one_each
from sojourn.measure.report import RootReport
from sojourn.measure.sketch import Sketch
from unit.measure.pulls import processor


def test_cpu_seconds_are_added_and_memory_is_what_it_is_now():
    merged = processor(cpu_s=1.0, memory_bytes=100) + processor(cpu_s=1.5, memory_bytes=80)
    assert (merged.cpu_s, merged.memory_bytes) == (2.5, 80)


def test_a_report_that_comes_twice_counts_once_and_the_fuller_one():
    full, half = processor(), processor(times_s=(0.1,) * 25)
    assert one_each([half, full, half]) == {"p0": full}


def test_roots_that_nobody_traced_have_no_times():
    roots = RootReport(entered=5, completed=5)
    assert roots.completions.number == roots.sums.number == 0
    assert replace(roots, sums=Sketch.of([1.0])).sums.mean_s == 1
