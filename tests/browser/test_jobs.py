"""A job is stopped and started from the feeds page: the real reconciler, with a program that only
sleeps instead of the job."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from webapp.detections.models import Detection
from webapp.jobs.models import DesiredState, Job
from webapp.jobs.services import job_default
from webapp.queries.models import QueryStop
from webapp.supervisor import processes
from webapp.supervisor.reconciler import reconcile

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


TRIPLES = {
    "family": "constraint", "version": 1, "variables": {"A": {}, "B": {}, "C": {}}, "report": "all",
    "constraints": [{"between": ["A", "B"], "dt": [0, 60_000]}, {"between": ["B", "C"], "dt": [0, 60_000]}],
}  # fmt: skip
"""All three rows within two minutes: half a million answers in 200 rows."""
GROWTH_BYTES = 600_000_000


@pytest.mark.spark
def test_an_unbounded_query_is_stopped_and_its_page_shows_the_reason(site: Site) -> None:
    """The real job continues with all other queries, and its memory has not grown."""
    world = site.world
    world.append(10)
    job = world.start_job()
    world.wait_caught_up()
    before = psutil.Process(job.pid).memory_info().rss
    costly = world.register("triples", TRIPLES)
    for _ in range(10):
        world.append(30)
        time.sleep(0.2)
    world.wait(lambda: QueryStop.objects.filter(query=costly).exists(), what="the costly query is stopped")
    world.append()
    world.wait_caught_up()
    assert job.poll() is None
    assert psutil.Process(job.pid).memory_info().rss - before < GROWTH_BYTES
    # Its earlier answers stay stored; those of the others are as if it had never been registered.
    Detection.objects.filter(query=costly).delete()
    world.check(removed=[costly.pk])
    site.log_in()
    page = site.page
    page.goto(f"{site.address}/queries/{costly.pk}")
    said = page.get_by_text("The job stopped this query").first
    said.wait_for()
    assert "complete more than 250,000 solutions" in said.inner_text()


def _reconciled() -> bool:
    reconcile(owner="test")
    return True


def _alive() -> bool:
    return bool(processes.job_processes())
