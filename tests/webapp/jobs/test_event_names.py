"""Events of jobs have names in the front end."""

from __future__ import annotations

import re

from webapp.jobs.models import JobEvent
from webapp.platform.folders import ROOT


def test_each_event_of_a_job_has_a_name_on_the_pages() -> None:
    words = (ROOT / "frontend" / "src" / "lib" / "words.ts").read_text(encoding="utf-8")
    names = words.partition("JOB_EVENTS")[2].partition("};")[0]
    assert re.findall(r"^  (\w+): t\(", names, re.MULTILINE) == JobEvent.Kind.values
