"""Cores and memory of a node, as its control group or its machine has them."""

import os

import psutil
import pytest

from sojourn.spark.agent.resources import core_use, memory_here

ALL = float(len(os.sched_getaffinity(0)))
HALF = ALL / 2
GIB = 1 << 30


@pytest.fixture
def tree(tmp_path):
    """Return a function that writes files, and tells what a process is told of its groups."""
    groups, system = tmp_path / "cgroup", tmp_path / "proc"

    def made(told, files, *, boot="boot-1"):
        busy = "".join(f"cpu{n} 100 0 100 900 50 0 0 7 0 0\n" for n in range(256))
        proc = {"self/cgroup": told, "sys/kernel/random/boot_id": f"{boot}\n", "stat": busy}
        for top, some in ((groups, files), (system, proc)):
            for name, text in some.items():
                path = top / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
        return core_use(groups, system)

    return made


def quota(cores):
    return f"{round(cores * 100_000)} 100000\n"


def test_a_container_of_version_2_has_what_its_group_has(tree):
    """It sees its own group at the top."""
    used = tree(
        "0::/\n", {"cpu.max": quota(HALF), "cpu.stat": "usage_usec 2500000\nuser_usec 1\n"}
    )
    assert (used.cores, used.used_s) == (HALF, 2.5)


def test_the_tightest_group_on_the_way_up_counts_and_all_that_runs_in_it(tree):
    """Other containers of a pod use the same cores, so their use counts, too."""
    used = tree(
        "0::/pods/one/main\n",
        {
            "cpu.stat": "usage_usec 99000000\n",
            "pods/cpu.max": "max 100000\n",
            "pods/one/cpu.max": quota(HALF),
            "pods/one/cpu.stat": "usage_usec 4000000\n",
            "pods/one/main/cpu.max": quota(0.75 * ALL),
            "pods/one/main/cpu.stat": "usage_usec 1000000\n",
        },
    )
    assert (used.cores, used.used_s) == (HALF, 4.0)


@pytest.mark.parametrize("controllers", ["cpu", "cpu,cpuacct", "cpuacct,cpu"])
def test_version_1_has_limit_and_use_in_two_places(tree, controllers):
    used = tree(
        f"7:memory:/elsewhere\n4:{controllers}:/docker/abc\n0::/\n",
        {
            "cpu/cpu.cfs_quota_us": "-1\n",
            "cpu/cpu.cfs_period_us": "100000\n",
            "cpu/docker/abc/cpu.cfs_quota_us": f"{round(HALF * 50_000)}\n",
            "cpu/docker/abc/cpu.cfs_period_us": "50000\n",
            "cpuacct/docker/abc/cpuacct.usage": "1500000000\n",
        },
    )
    assert (used.cores, used.used_s) == (HALF, 1.5)


def test_a_container_that_is_told_its_name_outside_has_what_it_sees_at_the_top(tree):
    used = tree(
        "4:cpu,cpuacct:/kubepods/pod7\n",
        {
            "cpu/cpu.cfs_quota_us": f"{round(HALF * 100_000)}\n",
            "cpu/cpu.cfs_period_us": "100000\n",
            "cpuacct/cpuacct.usage": "3000000000\n",
        },
    )
    assert (used.cores, used.used_s) == (HALF, 3.0)


def test_without_a_limit_it_is_the_machine_with_all_that_runs_there(tree):
    """Waiting for a disk, idling and what a hypervisor takes away is not computing."""
    ticks = os.sysconf("SC_CLK_TCK")
    for told, files in (
        ("", {}),
        ("0::/user.slice\n", {"user.slice/cpu.max": "max 100000\n"}),
        ("0::/\n", {"cpu.max": quota(4 * ALL), "cpu.stat": "usage_usec 1\n"}),
        ("0::/\n", {"cpu.max": "nonsense\n"}),
        ("4:cpu:/\n", {"cpu/cpu.cfs_quota_us": "100\n", "cpu/cpu.cfs_period_us": "0\n"}),
    ):
        used = tree(told, files)
        assert (used.cores, used.used_s) == (ALL, 200 * ALL / ticks)


def test_a_limit_counts_also_where_its_use_is_not_told(tree):
    used = tree("0::/\n", {"cpu.max": quota(HALF)})
    assert (used.cores, used.used_s) == (HALF, None)


def test_who_shares_cores_is_in_one_pool(tree):
    """Two agents in one container, or on one machine without limits, have the same cores."""
    machine = tree("", {}).pool
    assert tree("", {}).pool == machine
    assert tree("", {}, boot="boot-2").pool != machine
    limits = {f"{name}/cpu.max": quota(HALF) for name in ("a", "b")}
    one, again, other = (tree(f"0::/{name}\n", limits).pool for name in ("a", "a", "b"))
    assert one == again
    assert len({one, other, machine}) == 3


def test_of_this_machine_it_is_known():
    used = core_use()
    assert 0 < used.cores <= ALL
    assert used.used_s is None or used.used_s >= 0


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
