import os
from dataclasses import replace

import pytest

from sojourn.errors import BadFile
from sojourn_trial.cluster.recorded_process import RecordedProcess
from sojourn_trial.cluster.trial_state import STATE, TrialState, TrialWorker

ME = RecordedProcess.of(os.getpid())
BEFORE = replace(ME, started="another-boot/1")


def a_state(**values):
    return TrialState(token="f00", starter=ME, cores=4, memory_mb=1024, **values)


def worker(number, process=BEFORE):
    return TrialWorker(number=number, process=process, address=f"10.77.0.1{number}")


def test_a_process_is_recognised_by_when_it_started():
    """Another one may have its pid, after it has ended or after a reboot."""
    assert ME.runs
    assert not BEFORE.runs


def test_there_is_nothing_to_record_of_a_pid_that_nobody_has():
    assert RecordedProcess.of(2**22 + 1) is None


def test_what_is_written_is_read(tmp_path):
    state = a_state(master="spark://10.77.0.1:7077", workers=(worker(1), worker(2)), network=0)
    state.write(tmp_path)
    assert TrialState.read(tmp_path) == state
    assert (tmp_path / STATE).stat().st_mode & 0o777 == 0o600


def test_where_no_cluster_is_there_is_no_state(tmp_path):
    assert TrialState.read(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"token": 5}'])
def test_a_file_that_is_not_a_state_is_refused(tmp_path, text):
    (tmp_path / STATE).write_text(text)
    with pytest.raises(BadFile, match="does not describe a trial cluster"):
        TrialState.read(tmp_path)


def test_a_cluster_runs_while_one_of_its_processes_does():
    assert not a_state(master_process=BEFORE, workers=(worker(1),)).runs
    assert a_state(master_process=BEFORE, workers=(worker(1), worker(2, ME))).runs
    assert a_state(master_process=ME).runs


def test_killed_machines_are_still_looked_for():
    """A process of one may have been missed."""
    state = a_state(workers=(worker(1), worker(2)), machines=2).without(1)
    assert [each.number for each in state.workers] == [2]
    assert state.marks == ("f00/0", "f00/1", "f00/2")
