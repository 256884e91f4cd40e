"""Cores of a node, as its control group or its machine has them."""

import os

import pytest

from sojourn.spark.agent.cores import core_use

ALL = float(len(os.sched_getaffinity(0)))
HALF = ALL / 2


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
