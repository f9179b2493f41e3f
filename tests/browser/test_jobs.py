"""A job is stopped and started from the feeds page: the real reconciler, with a program in the job's place that only sleeps."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from webapp.jobs import processes
from webapp.jobs.models import DesiredState, Job
from webapp.jobs.reconciler import reconcile
from webapp.jobs.services import job_default

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def test_a_job_is_stopped_and_started_again(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "job_command", lambda name, epoch: [sys.executable, "-c", "import time; time.sleep(600)"])
    job_default()
    reconcile(owner="test")
    assert _alive()
    reader = site.world.feed.owner
    reader.is_superuser = True
    reader.save()
    site.log_in()
    page = site.page
    page.goto(site.address + "/feeds/")
    job = page.get_by_role("region", name="Jobs")
    job.get_by_role("button", name="Stop", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Stop job").click()
    job.get_by_role("button", name="Start", exact=True).wait_for()
    assert Job.objects.get().desired_state == DesiredState.STOPPED
    site.world.wait(lambda: _reconciled() and not _alive(), 30, "the job's process ends")
    reconcile(owner="test")
    job.get_by_text("Stopped", exact=True).first.wait_for()
    job.get_by_role("button", name="Start", exact=True).click()
    job.get_by_role("button", name="Stop", exact=True).wait_for()
    site.world.wait(lambda: _reconciled() and _alive(), 30, "a new process is started")
    job.get_by_text("Starting", exact=True).first.wait_for()
    assert site.faults == []


def _reconciled() -> bool:
    reconcile(owner="test")
    return True


def _alive() -> bool:
    return bool(processes.job_processes())
