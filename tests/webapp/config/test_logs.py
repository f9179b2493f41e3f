"""The format of the process log and of the audit log's lines, for log collectors."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import transaction

from webapp.audit.services import record
from webapp.config.logs import OneLine

FORGED = "x\n2026-01-01T00:00:00.000Z INFO webapp: all is well\r\x1b[2J\u2028y"


def test_input_of_outsiders_adds_no_line_to_the_log() -> None:
    formatter = OneLine("{asctime} {levelname} {name}: {message}", style="{")
    line = formatter.format(logging.LogRecord("webapp", logging.WARNING, "", 0, "no feed %s", (FORGED,), None))
    assert len(line.splitlines()) == 1 and "\\n2026-01-01" in line and "\x1b" not in line
    assert line[:4].isdigit() and line.split(" ")[0].endswith("Z"), "the time is in UTC and says so"


def test_no_line_of_a_traceback_looks_like_an_entry() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError:
        record = logging.LogRecord("webapp", logging.ERROR, "", 0, "broken", (), sys.exc_info())
    lines = OneLine("{asctime} {levelname} {name}: {message}", style="{").format(record).splitlines()
    assert len(lines) > 2 and all(line.startswith("  ") for line in lines[1:])


@pytest.mark.services
@pytest.mark.django_db(transaction=True)
def test_entries_are_lines_as_well_once_they_are_stored(people: SimpleNamespace, settings: Any, tmp_path: Path) -> None:
    settings.AUDIT_FILE = str(tmp_path / "audit.jsonl")
    handler = logging.FileHandler(settings.AUDIT_FILE)
    logger = logging.getLogger("vedette.audit")
    logger.addHandler(handler)
    try:
        record("feed.look", people.owner, note=FORGED)
        with pytest.raises(RuntimeError), transaction.atomic():
            record("feed.change", people.owner)
            raise RuntimeError("not stored")
    finally:
        logger.removeHandler(handler)
        handler.close()
    (line,) = (tmp_path / "audit.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert entry["action"] == "feed.look" and entry["object_id"] == str(people.owner.pk) and entry["detail"]["note"] == FORGED
    assert entry["at"].endswith("+00:00") and entry["id"]


def test_the_settings_read_secrets_from_files_and_write_entries_where_the_operator_says(tmp_path: Path) -> None:
    program = "import django, logging; django.setup(); from django.conf import settings as s; logging.getLogger('vedette.audit').info(s.SECRET_KEY)"
    (tmp_path / "key").write_text("from a file")
    environment = {"DJANGO_SETTINGS_MODULE": "webapp.config.settings", "SECRET_KEY_FILE": str(tmp_path / "key")}
    for given in ("-", str(tmp_path / "lines")):
        done = subprocess.run(
            [sys.executable, "-c", program], env={**environment, "VEDETTE_AUDIT_LINES": given}, capture_output=True, text=True, check=True
        )
        assert (done.stdout if given == "-" else (tmp_path / "lines").read_text()) == "from a file\n"


def test_logs_name_tokens_without_revealing_them() -> None:
    record = logging.LogRecord("x", logging.WARNING, "f", 1, "Not Found: %s", ("/api/v1/track/vans/vdt_abcd1234-efgh_5678?id=a",), None)
    record.message = record.getMessage()
    assert OneLine("{message}", style="{").formatMessage(record) == "Not Found: /api/v1/track/vans/vdt_abcd...?id=a"
    token = "vdt_abcd1234-efgh_5678"
    try:
        raise ValueError(f"{token} is not taken")
    except ValueError:
        trace = OneLine().formatException(sys.exc_info())
    assert "ValueError: vdt_abcd... is not taken" in trace and "efgh" not in trace
