"""Supervision with a dummy job: a real process with the job's token that sleeps, and children that
it may leave behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import psutil
import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests.webapp.answers import a_feed
from webapp.jobs import services
from webapp.jobs.models import DesiredState, FeedHead, Job, JobEvent, ObservedState
from webapp.platform.postgres import with_database
from webapp.supervisor import processes, reconciler
from webapp.supervisor.reconciler import BACKOFF_S, CRASH_LIMIT, CRASH_LOOP_S, SILENT, STOP_TIMEOUT, SUSPECT, UNCLAIMED, reconcile

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

SLEEPS = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
CHILD = "import os, time; os.setsid(); time.sleep(600)"
WITH_CHILD = f"import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', '{CHILD}']); time.sleep(600)"
HEEDS = "import signal; signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM]); "
"""The behaviour of the real program once it handles signals."""
FAILS = "raise SystemExit('no such region')"


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    yield
    for found in processes.job_processes():
        found.process.kill()
        found.process.wait(5)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the program that is started as the job."""

    def choose(code: str) -> None:
        monkeypatch.setattr(processes, "job_command", lambda name, epoch: [sys.executable, "-c", HEEDS + code])

    choose(SLEEPS)
    return choose


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Advances the reconciler's clock."""
    passed = timedelta()
    real = timezone.now

    def wait(duration: timedelta) -> None:
        nonlocal passed
        passed += duration

    monkeypatch.setattr(reconciler.timezone, "now", lambda: real() + passed)
    return wait


def the_job() -> Job:
    return Job.objects.get(name="main")


def running_job() -> Job:
    """The job, started and with heartbeats."""
    reconcile(owner="a")
    job = the_job()
    give_up = time.monotonic() + 10
    while alive() != [job.pid] and time.monotonic() < give_up:
        # For a moment a new program has no environment that could be read.
        time.sleep(0.01)
    services.job_claim(name="main", epoch=job.epoch, pid=job.pid, pgid=job.pid, pid_started=0.0, host=processes.hostname())
    services.job_ready(job_id=job.pk, epoch=job.epoch, seconds=1)
    return the_job()


def alive() -> list[int]:
    return [found.pid for found in processes.job_processes()]


def ignores_termination(pid: int) -> bool:
    ignored = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn:"))
    return bool(int(ignored.split()[1], 16) >> (signal.SIGTERM - 1) & 1)


def ended(pid: int, seconds: float = 5) -> bool:
    """Whether the child `pid` ends within this time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.02)
    return False


def kinds() -> list[str]:
    return list(JobEvent.objects.order_by("id").values_list("kind", flat=True))


def test_a_wanted_job_is_started_in_a_session_of_its_own(program: Callable[[str], None]) -> None:
    a_feed()
    reconcile(owner="a")
    job = the_job()
    assert alive() == [job.pid]
    assert os.getsid(job.pid) == job.pid != os.getsid(0)
    assert (job.epoch, job.observed_state, kinds()) == (1, ObservedState.STARTING, ["started"])
    assert FeedHead.objects.get().job == job


def test_a_job_that_was_asked_to_end_is_started_again_without_a_crash(program: Callable[[str], None]) -> None:
    job = running_job()
    os.kill(job.pid, signal.SIGTERM)
    assert ended(job.pid)
    services.job_left(job_id=job.pk, epoch=job.epoch)
    assert the_job().observed_state == ObservedState.STOPPED
    reconcile(owner="a")
    again = the_job()
    assert (again.epoch, again.failures, again.restarts, alive()) == (2, 0, 0, [again.pid])
    services.job_left(job_id=job.pk, epoch=job.epoch)
    assert the_job().observed_state == ObservedState.STARTING, "what an older start says of itself is nothing to the newer one"
    assert kinds() == ["started", "ready", "stopped", "started"]


def test_a_running_job_is_left_alone(program: Callable[[str], None]) -> None:
    job = running_job()
    for _ in range(3):
        reconcile(owner="a")
    assert alive() == [job.pid]
    assert the_job().epoch == 1


def test_two_reconcilers_at_once_start_one_process(program: Callable[[str], None]) -> None:
    services.job_default()

    def round_of(owner: str) -> None:
        try:
            reconcile(owner=owner)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(round_of, "abcd"))
    assert len(alive()) == 1
    assert the_job().epoch == 1


def test_a_start_whose_transaction_is_lost_is_an_orphan_and_may_not_claim(program: Callable[[str], None]) -> None:
    """The worker dies after it started the process and before it recorded that."""
    with pytest.raises(RuntimeError), transaction.atomic():
        reconcile(owner="a")
        raise RuntimeError("killed")
    (lost,) = alive()
    services.job_default()
    assert services.job_claim(name="main", epoch=1, pid=lost, pgid=lost, pid_started=0, host="h") is None
    reconcile(owner="b")
    assert ended(lost)
    assert alive() == [the_job().pid]
    assert "orphan" in kinds()


def test_a_killed_job_starts_again_after_the_back_off(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    job = running_job()
    os.kill(job.pid, signal.SIGKILL)
    assert ended(job.pid)
    reconcile(owner="a")
    assert (the_job().observed_state, the_job().failures, alive()) == (ObservedState.BACKOFF, 1, [])
    clock(timedelta(seconds=BACKOFF_S[0]))
    reconcile(owner="a")
    assert (the_job().epoch, the_job().restarts, alive()) == (2, 1, [the_job().pid])


@pytest.mark.parametrize("code", [SLEEPS, f"print('2026-12-01T03:58:15.764Z INFO webapp.supervisor.driver: fleet continues', flush=True); {SLEEPS}"])
def test_a_killed_job_has_no_line_of_its_log_as_the_reason(program: Callable[[str], None], clock: Callable[[timedelta], None], code: str) -> None:
    program(FAILS)
    reconcile(owner="a")
    assert ended(the_job().pid)
    reconcile(owner="a")
    program(code)
    clock(timedelta(seconds=BACKOFF_S[0]))
    job = running_job()
    time.sleep(0.3)
    os.kill(job.pid, signal.SIGKILL)
    assert ended(job.pid)
    reconcile(owner="a")
    assert the_job().last_error == str(reconciler.SILENT_END)


def test_what_a_killed_job_left_behind_is_ended_before_it_starts_again(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    program(WITH_CHILD)
    job = running_job()
    while len(alive()) < 2:
        time.sleep(0.02)
    (child,) = set(alive()) - {job.pid}
    os.kill(job.pid, signal.SIGKILL)
    assert ended(job.pid)
    assert alive() == [child]
    reconcile(owner="a")
    assert alive() == []


def test_a_failing_job_is_retried_with_back_off_or_at_once_by_hand(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    program(FAILS)
    reconcile(owner="a")
    while the_job().observed_state != ObservedState.CRASH_LOOP:
        if the_job().pid:
            assert ended(the_job().pid)
        clock(timedelta(seconds=max(BACKOFF_S)))
        reconcile(owner="a")
    assert (the_job().epoch, kinds()[-1]) == (CRASH_LIMIT, "crash_loop")
    assert "no such region" in the_job().last_error
    reconcile(owner="a")
    assert the_job().epoch == CRASH_LIMIT, "it waits"
    clock(timedelta(seconds=CRASH_LOOP_S))
    reconcile(owner="a")
    assert the_job().epoch == CRASH_LIMIT + 1, "what it needs may be back"
    assert ended(the_job().pid)
    reconcile(owner="a")
    assert the_job().observed_state == ObservedState.CRASH_LOOP
    program(SLEEPS)
    services.job_start(job=the_job())
    reconcile(owner="a")
    assert alive() == [the_job().pid]


def test_only_failures_within_the_span_are_counted(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    """At minutes 0, 3, 8, 17 and 18 of ten: three within the last ten."""
    program(FAILS)
    for pause in (3, 5, 9, 1, 3):
        reconcile(owner="a")
        assert ended(the_job().pid)
        reconcile(owner="a")
        clock(timedelta(minutes=pause))
    assert (the_job().observed_state, the_job().failures, the_job().restarts) == (ObservedState.BACKOFF, 2, 5)


def test_a_start_that_is_stopped_at_once_is_not_a_failure(program: Callable[[str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """The real program, which needs seconds until it handles signals."""
    monkeypatch.undo()
    monkeypatch.setenv("DATABASE_URL", with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"]))
    reconcile(owner="a")
    pid = the_job().pid
    os.kill(pid, signal.SIGTERM)
    assert ended(pid, 60)
    # Not `starting`, which the reconciler would take for a crash.
    assert (the_job().observed_state, the_job().pid) == (ObservedState.STOPPED, None)


def test_a_stopped_job_ends_and_stays_stopped(program: Callable[[str], None]) -> None:
    job = running_job()
    services.job_stop(job=job)
    reconcile(owner="a")
    assert the_job().observed_state == ObservedState.STOPPING
    assert ended(job.pid)
    for _ in range(3):
        reconcile(owner="a")
    assert (the_job().observed_state, alive()) == (ObservedState.STOPPED, [])


def test_a_job_that_does_not_stop_is_ended_by_force(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    program(STUBBORN)
    job = running_job()
    while not ignores_termination(job.pid):
        time.sleep(0.05)
    services.job_stop(job=job)
    reconcile(owner="a")
    clock(STOP_TIMEOUT + timedelta(seconds=1))
    reconcile(owner="a")
    assert ended(job.pid)
    assert the_job().observed_state == ObservedState.STOPPED
    assert "killed" in kinds()


def test_a_job_without_heartbeats_is_suspected_and_then_replaced(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    job = running_job()
    os.kill(job.pid, signal.SIGSTOP)
    clock(SILENT + timedelta(seconds=1))
    reconcile(owner="a")
    assert alive() == [job.pid]
    clock(SUSPECT + timedelta(seconds=1))
    reconcile(owner="a")
    assert ended(job.pid)
    clock(timedelta(seconds=BACKOFF_S[0]))
    reconcile(owner="a")
    assert the_job().epoch == 2


def test_a_slow_start_on_a_busy_machine_is_not_killed(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    """It has not claimed the job yet. Ended like a silent job, it would be started again and
    again without getting further."""
    reconcile(owner="a")
    pid = the_job().pid
    for _ in range(2):
        clock(SILENT + SUSPECT)
        reconcile(owner="a")
    assert (alive(), the_job().observed_state) == ([pid], ObservedState.STARTING)
    clock(UNCLAIMED)
    reconcile(owner="a")
    clock(SUSPECT + timedelta(seconds=1))
    reconcile(owner="a")
    assert ended(pid) and kinds()[-1] == "crashed", "one that hangs is ended all the same"


def test_a_job_with_heartbeats_again_after_an_outage_is_kept(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    job = running_job()
    clock(SILENT + timedelta(seconds=1))
    reconcile(owner="a")
    Job.objects.update(heartbeat=reconciler.timezone.now())
    clock(SUSPECT)
    reconcile(owner="a")
    assert (alive(), the_job().suspect_since) == ([job.pid], None)


def test_another_worker_adopts_a_running_job(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    job = running_job()
    clock(reconciler.LEASE + timedelta(seconds=1))
    Job.objects.update(heartbeat=reconciler.timezone.now())
    reconcile(owner="b")
    assert (alive(), the_job().lease_owner, the_job().epoch) == ([job.pid], "b", 1)
    assert "adopted" in kinds()


def test_a_job_of_another_machine_is_not_started_during_its_lease(program: Callable[[str], None], clock: Callable[[timedelta], None]) -> None:
    services.job_default()
    Job.objects.update(host="elsewhere", observed_state="running", epoch=4, lease_owner="x", lease_until=timezone.now() + timedelta(seconds=5))
    reconcile(owner="a")
    assert alive() == []
    clock(timedelta(seconds=10))
    reconcile(owner="a")
    clock(timedelta(seconds=10))
    reconcile(owner="a")
    assert (the_job().epoch, the_job().host) == (5, processes.hostname())


def test_only_the_newest_start_may_claim_the_job(program: Callable[[str], None]) -> None:
    job = running_job()
    claim = {"name": "main", "pid": 1, "pgid": 1, "pid_started": 0.0, "host": "h"}
    assert services.job_claim(epoch=job.epoch - 1, **claim) is None
    assert services.job_claim(epoch=job.epoch + 1, **claim) is None
    by_hand = services.job_claim(epoch=None, **claim)
    assert by_hand is not None
    assert by_hand.epoch == job.epoch + 1
    assert services.job_heartbeat(job_id=job.pk, epoch=job.epoch) is None
    assert services.job_heartbeat(job_id=job.pk, epoch=by_hand.epoch) == DesiredState.RUNNING


def test_a_stopped_job_may_not_be_claimed() -> None:
    services.job_stop(job=services.job_default())
    assert services.job_claim(name="main", epoch=None, pid=1, pgid=1, pid_started=0, host="h") is None


def test_processes_of_other_installations_are_ignored(program: Callable[[str], None]) -> None:
    environment = {**os.environ, processes.TOKEN: "t", processes.JOB: "main", "VEDETTE_VAR": "/elsewhere"}
    other = subprocess.Popen([sys.executable, "-c", SLEEPS], env=environment)
    try:
        time.sleep(0.1)
        reconcile(owner="a")
        assert other.pid not in alive()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
