"""The memory of a node, from files as the system has them."""

import psutil
import pytest

from sojourn.spark.agent.memory import memory_here

GIB = 1 << 30


@pytest.fixture
def system(tmp_path):
    """Give what writes the files of a group, and what reads the memory."""

    class System:
        ours = tmp_path / "ours"

        def group(self, folder, **files):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            for name, text in files.items():
                (tmp_path / folder / f"memory.{name}").write_text(f"{text}\n")

        def memory(self, told):
            self.ours.write_text(told)
            found = memory_here(tmp_path, self.ours)
            return found.used_bytes, found.limit_bytes

    return System()


@pytest.fixture
def machine():
    return psutil.virtual_memory().total


def test_a_container_has_its_limit_and_what_it_uses_without_files_it_has_read(system):
    system.group("", max=GIB, current=GIB // 2, stat=f"anon 7\ninactive_file {GIB // 4}")
    assert system.memory("0::/\n") == (GIB // 4, GIB)


def test_an_older_kernel_has_a_group_for_memory_alone(system):
    system.group(
        "memory/pod", limit_in_bytes=GIB, usage_in_bytes=GIB // 2,
        stat=f"inactive_file 5\ntotal_inactive_file {GIB // 8}",
    )  # fmt: skip
    told = "5:cpu,cpuacct:/\n4:memory:/pod\n0::/\n"
    assert system.memory(told) == (GIB // 2 - GIB // 8, GIB)


def test_the_tightest_of_groups_around_it_counts(system):
    system.group("pod/main", max="max", current=1, stat="")
    system.group("pod", max=GIB, current=3 * GIB // 4, stat="")
    system.group("", max=4 * GIB, current=2 * GIB, stat="")
    assert system.memory("0::/pod/main\n") == (3 * GIB // 4, GIB)


def test_a_name_that_only_the_outside_knows_is_that_of_the_top(system):
    """As in a container that sees the group it is, and is told what others call it."""
    system.group("", max=GIB, current=1024, stat="inactive_file 0")
    assert system.memory("0::/kubepods/pod7/abc\n") == (1024, GIB)


@pytest.mark.parametrize(
    "files",
    [
        {"max": "max", "current": 1, "stat": ""},
        {"max": 1 << 62, "current": 1, "stat": ""},
        {"limit_in_bytes": 9223372036854771712, "usage_in_bytes": 1, "stat": ""},
        {"max": "many", "current": 1, "stat": ""},
        {},
    ],
)
def test_without_a_limit_it_is_the_machine(system, machine, files):
    system.group("", **files)
    used, limit = system.memory("0::/\n")
    assert limit == machine
    assert 0 < used < limit


def test_a_system_without_groups_has_the_machine(tmp_path, machine):
    assert memory_here(tmp_path, tmp_path / "none").limit_bytes == machine
