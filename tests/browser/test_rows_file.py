"""The rows of a feed, downloaded from its card."""

from __future__ import annotations

from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from webapp.feeds.recent import newest_rows

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]


def test_rows_of_a_period_are_a_file(site: Site) -> None:
    site.world.append(60)
    times = newest_rows(site.world.feed, 1_000, ["t"]).column("t").to_pylist()
    site.log_in()
    page = site.page
    page.goto(f"{site.address}/feeds/")
    page.get_by_role("button", name="Rows as a file").click()
    dialog = page.get_by_role("dialog", name="Rows as a file")
    with page.expect_download() as whole:
        dialog.get_by_role("button", name="Parquet").click()
    assert whole.value.suggested_filename == "yard.parquet"
    assert pq.read_table(BytesIO(whole.value.path().read_bytes())).column("t").to_pylist() == times
    begin = datetime.fromtimestamp(times[len(times) // 2] // 1000, UTC)
    dialog.get_by_label("From").fill(begin.strftime("%Y-%m-%dT%H:%M:%S"))
    with page.expect_download() as part:
        dialog.get_by_role("button", name="CSV").click()
    assert len(part.value.path().read_text().splitlines()) == 1 + sum(t >= begin.timestamp() * 1000 for t in times)
    assert site.faults == []
