"""A trial cluster as a user starts and stops it, and that nothing is left of it."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import psutil
import pytest
from typer.testing import CliRunner

from processes import started
from sojourn.cli import app
from sojourn.errors import BadInput, EngineError
from sojourn_trial.cluster import trial_cluster
from sojourn_trial.cluster.machine_processes import MARK
from sojourn_trial.cluster.recorded_process import RecordedProcess
from sojourn_trial.cluster.trial_cluster import TrialCluster
from sojourn_trial.cluster.trial_folder import end_cluster
from sojourn_trial.cluster.trial_network import Wire, claim_network, why_not
from sojourn_trial.cluster.trial_state import TrialState, TrialWorker
from spark.test_watchdog import until

SLEEP = (sys.executable, "-c", "import time; time.sleep(1000)")
# Prints the machines that a job ran on: each task waits until all run at once.
JOB = """
import os, sys, time
from pyspark.sql import SparkSession
options = {"spark.master": sys.argv[1], "spark.driver.host": sys.argv[2],
           "spark.driver.bindAddress": sys.argv[2], "spark.ui.enabled": "false",
           "spark.executor.memory": "512m", "spark.executor.cores": "1"}
session = SparkSession.builder.config(map=options).getOrCreate()
def machine(_rows):
    from pyspark import BarrierTaskContext
    BarrierTaskContext.get().barrier()
    yield os.environ["SOJOURN_TRIAL_MACHINE"]
rows = session.sparkContext.parallelize(range(2), 2)
print(*sorted(rows.barrier().mapPartitions(machine).collect()))
session.stop()
"""


def command(*arguments):
    return CliRunner().invoke(app, ["cluster", *map(str, arguments)])


def marked(token):
    """Return what runs for a cluster, as the environment of all processes tells."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(token):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def job(cluster):
    return subprocess.run(
        [sys.executable, "-c", JOB, cluster["master"], cluster["driver_address"]],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


@pytest.fixture
def folder(tmp_path):
    """Return a folder for a cluster, which is ended whatever happens."""
    yield tmp_path / "cluster"
    end_cluster(tmp_path / "cluster")


# -- with Java ---------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.usefixtures("jars")
def test_a_cluster_runs_jobs_on_all_its_workers_and_is_stopped(folder):
    options = ("--nodes", 2, "--cores", 1, "--plain", "--folder", folder, "--json")
    with started(
        [sys.executable, "-m", "sojourn", "cluster", "start", *options],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        told = json.loads(process.communicate()[0])
    assert told["network"] == "plain"
    assert f"--master {told['master']} --conf spark.driver.host=127.0.0.1 " in told["run"]
    token = TrialState.read(folder).token
    done = job(told)
    assert done.stdout.split() == [f"{token}/1", f"{token}/2"], done.stderr
    again = command("start", "--folder", folder)
    assert again.exit_code == 3
    assert f"already runs in {folder} ({told['master']})" in again.stderr
    os.kill(told["workers"][0]["pid"], signal.SIGKILL)
    until(lambda: "has ended" in command("status", "--folder", folder).stdout)
    assert command("stop", "--folder", folder).stdout == "stopped\n"
    assert marked(token) == []
    assert not folder.exists()
    assert "nothing to stop" in command("stop", "--folder", folder).stdout


@pytest.mark.spark
@pytest.mark.usefixtures("jars")
@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_machines_in_namespaces_are_apart_and_are_killed_as_a_whole():
    delay_s = 0.005
    with TrialCluster(2, wire=Wire(rate="1gbit", delay_s=delay_s)) as cluster:
        network = cluster._network  # noqa: SLF001 - its names
        first, second = cluster.workers
        assert (first.address, second.address) == (network.address(1), network.address(2))
        # it has no mark, and is not a child of the worker
        with started(["ip", "netns", "exec", first.namespace, *SLEEP]) as stranger:
            until(lambda: psutil.Process(stranger.pid) in network.processes([1]))
            assert round_trip_s(second, cluster.driver_address) >= 2 * delay_s
            cluster.cut(2)
            assert not psutil.net_if_stats()[second.namespace].isup
            cluster.mend(2)
            assert round_trip_s(second, cluster.driver_address) >= 2 * delay_s
            cluster.kill(1)
            assert stranger.wait(60) == -signal.SIGKILL
        assert cluster.workers == (second,)
        token, path = cluster.state.token, cluster.folder
        assert {process.environ()[MARK] for process in marked(token)} == {
            f"{token}/0",
            f"{token}/2",
        }
        with pytest.raises(BadInput, match="there is no worker 1; there are: 2"):
            cluster.kill(1)
    assert marked(token) == []
    assert not path.exists()
    assert network.bridge not in interfaces()


def round_trip_s(worker, address):
    """Return how long a connection from a worker to an address of ours takes."""
    program = (
        "import socket, sys, time; since_s = time.monotonic()\n"
        "try: socket.create_connection((sys.argv[1], 1), 60)\n"
        "except ConnectionRefusedError: print(time.monotonic() - since_s)"
    )
    done = subprocess.run(
        ["ip", "netns", "exec", worker.namespace, sys.executable, "-c", program, address],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def interfaces():
    """Return the text about all namespaces and interfaces."""
    listed = (["ip", "netns", "list"], ["ip", "-o", "link"])
    return "".join(
        subprocess.run(each, capture_output=True, text=True, check=True).stdout
        for each in listed
    )


@pytest.mark.spark
@pytest.mark.usefixtures("jars")
def test_a_start_that_is_interrupted_leaves_nothing(folder):
    with started(
        [sys.executable, "-m", "sojourn", "cluster", "start", "--folder", folder],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        until((folder / "master.log").exists)
        token = TrialState.read(folder).token
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=100)[0] == b""
        assert process.returncode == 130
    assert marked(token) == []
    assert not folder.exists()


@pytest.mark.spark
@pytest.mark.usefixtures("jars")
def test_what_does_not_start_in_time_is_ended(folder):
    with pytest.raises(EngineError, match="master did not start within 0 s"):
        TrialCluster(1, plain=True, folder=folder, patience_s=0).start()
    assert not folder.exists()


# -- without -----------------------------------------------------------------------------------


def recorded(folder, process, **values):
    """Write the state of a cluster, whose master is *process*."""
    folder.mkdir()
    ended = RecordedProcess(pid=process.pid, started="another-boot/1")
    values = {"starter": ended, "master_process": ended} | values
    TrialState(token="f00", cores=1, memory_mb=512, **values).write(folder)


def test_another_process_with_the_same_pid_is_left_alone(folder):
    with started(SLEEP) as other:
        recorded(folder, other, network=7)
        (folder / "worker-1").mkdir()
        assert end_cluster(folder)
        assert not folder.exists()
        assert other.poll() is None


def test_what_was_started_is_ended_with_what_it_started(folder):
    program = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    with started([sys.executable, "-c", program, *SLEEP]) as master:
        child = until(psutil.Process(master.pid).children)[0]
        recorded(folder, master, master_process=RecordedProcess.of(master.pid))
        assert end_cluster(folder)
        assert master.wait(60) == -signal.SIGTERM
        assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE


def test_what_has_the_mark_is_ended_whoever_its_parent_is(folder):
    with started(SLEEP, env=os.environ | {MARK: "f00/2"}, start_new_session=True) as astray:
        recorded(folder, astray, machines=2)
        assert end_cluster(folder)
        assert astray.wait(60) == -signal.SIGKILL


def test_a_child_whose_environment_is_not_there_yet_is_ended(folder, monkeypatch):
    read, nothing_yet = psutil.Process.environ, [3]

    def environ(process):
        if process.pid == astray.pid and nothing_yet[0] > 0:
            nothing_yet[0] -= 1
            return {}
        return read(process)

    with started(SLEEP, env=os.environ | {MARK: "f00/2"}, start_new_session=True) as astray:
        recorded(folder, astray, machines=2)
        monkeypatch.setattr(psutil.Process, "environ", environ)
        assert end_cluster(folder)
        assert astray.wait(60) == -signal.SIGKILL


def test_a_start_removes_what_a_dead_cluster_left(folder, monkeypatch):
    def refused(*_arguments):
        raise EngineError("no")

    monkeypatch.setattr(trial_cluster, "master_command", refused)
    monkeypatch.setattr(trial_cluster, "find_java", lambda: None)
    with started(SLEEP) as other:
        recorded(folder, other)
        (folder / "left").touch()
        with pytest.raises(EngineError, match="no"):
            TrialCluster(1, plain=True, folder=folder).start()
    assert not folder.exists()


def test_a_cluster_that_is_being_started_is_not_started_again(folder, monkeypatch):
    monkeypatch.setattr(trial_cluster, "find_java", lambda: None)
    with started(SLEEP) as other:
        me = RecordedProcess.of(os.getpid())
        recorded(folder, other, starter=me)
        with pytest.raises(EngineError, match="it is starting"):
            TrialCluster(1, folder=folder).start()
        replace(TrialState.read(folder), starter=replace(me, started="x")).write(folder)


def test_a_folder_of_something_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(trial_cluster, "find_java", lambda: None)
    (tmp_path / "mine").touch()
    with pytest.raises(BadInput, match="is not empty; choose another --folder"):
        TrialCluster(1, folder=tmp_path).start()
    with pytest.raises(BadInput, match="mine/cluster: cannot be used"):
        TrialCluster(1, folder=tmp_path / "mine" / "cluster").start()
    assert (tmp_path / "mine").exists()


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_network_of_another_cluster_is_left_alone():
    one = claim_network("one")
    try:
        other = claim_network("other")
        other.remove([])
        assert other.number != one.number
        replace(one, token="other").remove([])
        assert one.ours
    finally:
        one.remove([])
    assert not one.ours


# Prints by what error an address is out of reach; empty if a packet to it can be sent.
REACHES = """
import errno, socket, sys
for address in sys.argv[1:]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packets:
        print(errno.errorcode.get(packets.connect_ex((address, 53)), ""))
"""


@pytest.mark.skipif(bool(why_not()), reason=why_not())
def test_a_worker_reaches_this_machine_and_learns_at_once_that_nothing_else_answers(dummy):
    """A name server that is silent would hold up every connection to Kafka for 10 s."""
    network = claim_network("names")
    try:
        network.connect(1, Wire())
        inside = ["ip", "netns", "exec", network.namespace(1), sys.executable, "-c", REACHES]
        addresses = [network.driver_address, dummy, "203.0.113.53"]
        done = subprocess.run([*inside, *addresses], capture_output=True, text=True, check=True)
        assert done.stdout.split("\n") == ["", "", "ENETUNREACH", ""]
    finally:
        network.remove([1])


@pytest.fixture
def dummy():
    """Return an address of this machine that is neither loopback nor that of a cluster."""
    name, address = "sojourn-dummy", "198.51.100.7"
    subprocess.run(["ip", "link", "add", name, "type", "bridge"], check=True)
    try:
        subprocess.run(["ip", "addr", "add", f"{address}/32", "dev", name], check=True)
        subprocess.run(["ip", "link", "set", name, "up"], check=True)
        yield address
    finally:
        subprocess.run(["ip", "link", "del", name], check=True)


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["begin"], 2, "'begin' is not an action; write start, stop or status"),
        (["status"], 3, "`sojourn cluster start` starts one"),
        (["start", "--rate", "fast"], 2, "'fast' is not a rate"),
        (["start", "--plain", "--delay-ms", 2], 2, "needs network namespaces, but processes"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    folder, monkeypatch, arguments, status, said
):
    monkeypatch.setattr(trial_cluster, "find_java", lambda: None)
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGHUP)}
    done = command(*arguments, "--folder", folder)
    for each, handler in before.items():
        signal.signal(each, handler)
    assert (done.exit_code, done.stdout) == (status, "")
    assert said in done.stderr
    assert not folder.exists()


@pytest.mark.parametrize("nodes", [0, 100])
def test_a_number_of_nodes_that_cannot_be_is_refused(nodes):
    with pytest.raises(BadInput, match=f"the number of nodes is {nodes}; write 1 to 99"):
        TrialCluster(nodes)


def test_without_java_nothing_is_started(folder, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "sojourn", "cluster", "start", "--folder", folder],
        env=os.environ | {"JAVA_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("sojourn: Java 17 or newer is required")
    assert not folder.exists()


def test_a_machine_that_shares_our_network_cannot_be_cut_off_it():
    cluster = TrialCluster()
    me = RecordedProcess.of(os.getpid())
    worker = TrialWorker(number=1, process=me, address="127.0.0.1")
    cluster._state = TrialState(  # noqa: SLF001 - as if it had started
        token="f00", starter=me, cores=1, memory_mb=512, workers=(worker,), why_plain="no root"
    )
    with pytest.raises(BadInput, match="worker 1 has no network of its own to cut: no root"):
        cluster.cut(1)


def test_a_cluster_that_was_not_started_has_no_master():
    cluster = TrialCluster()
    cluster.stop()
    with pytest.raises(EngineError, match="start it first"):
        _ = cluster.master
