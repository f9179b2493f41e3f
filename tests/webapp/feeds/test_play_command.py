"""`manage.py play` on a real server, as documented: the result for every
row, and what is refused."""

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from webapp.accounts.services import token_create
from webapp.feeds.credentials import server_url
from webapp.feeds.logs import event_log
from webapp.feeds.models import Feed, IngestCounter
from webapp.feeds.services import feed_create

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("pool_connections")]
T = 1_600_000_000_000


@pytest.fixture
def harbour(people: SimpleNamespace) -> Feed:
    """A feed whose clock is the wall clock."""
    return feed_create(owner=people.owner, name="harbour", title="h", crs="geographic", wall_clock=True, lateness=5_000)


@pytest.fixture
def play(people: SimpleNamespace, live_server: Any, settings: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Plays rows of (entity, t) to a feed; returns the output."""
    settings.VAR = tmp_path
    token = token_create(user=people.owner, name="player", scopes=["ingest"]).text

    def run(feed: Feed, rows: list[tuple[str, int]], *options: str) -> str:
        path = tmp_path / f"recording-{len(list(tmp_path.iterdir()))}.csv"
        path.write_text("mmsi,ts,lon,lat\n" + "".join(f"{entity},{t},11.0,54.0\n" for entity, t in rows))
        address = ["--feed", feed.name, "--url", live_server.url, "--token", token, "--map", "entity=mmsi,x=lon,y=lat,t=ts"]
        call_command("play", str(path), *address, *options)
        return capsys.readouterr().out

    return run


def times(feed: Feed) -> list[int]:
    return [t for table in event_log(feed.name).read() for t in table["t"].to_pylist()]


def test_a_recording_plays_sixty_times_as_fast_shifted_to_now(play: Any, harbour: Feed) -> None:
    begun = time.time_ns() // 1_000_000
    # Two minutes of the recording in two seconds.
    said = play(harbour, [(f"v{n % 3}", T + 1_000 * n) for n in range(120)], "--rate", "60x", "--shift-to-now")
    assert "120 rows sent: 120 accepted, 0 late, 0 dead; 0 rows of the file unreadable" in said
    sent = times(harbour)
    assert 0 <= sent[0] - begun < 3_000
    assert 1_900 <= sent[-1] - sent[0] <= 2_000
    assert IngestCounter.objects.get(feed=harbour).dead == 0


def test_lost_rows_are_counted_and_change_the_exit_status(play: Any, feed: Feed) -> None:
    rows = [("a", T), ("a", T + 10_000), ("a", T), ("a", T + 11 * 86_400_000), ("a", T + 11_000), ("", T + 12_000)]
    with pytest.raises(CommandError, match=r"No events of the feed: 3 rows\..*1 future") as lost:
        play(feed, rows, "--rate", "max")
    assert lost.value.returncode == 3
    assert times(feed) == [T, T + 10_000, T, T + 11_000]


def test_invalid_options_are_refused_before_any_row_is_sent(play: Any, feed: Feed, harbour: Feed) -> None:
    with pytest.raises(CommandError, match=r"goes by the wall clock: at the rate max"):
        play(harbour, [("a", T), ("a", T + 1_000)], "--rate", "max", "--shift-to-now")
    with pytest.raises(CommandError, match=r"would be late. Either play it with --shift-to-now"):
        play(harbour, [("a", T)], "--rate", "60x")
    play(feed, [("a", T)], "--rate", "max")
    with pytest.raises(CommandError, match=r"The clock of yard is at 2020-09-13 12:26:40"):
        play(feed, [("a", T - 60_000)], "--rate", "max")
    assert (times(harbour), times(feed)) == ([], [T])


def test_what_is_missing_is_named_with_its_remedy(feed: Feed, settings: Any, tmp_path: Path) -> None:
    settings.VAR = tmp_path
    (tmp_path / "rows.csv").write_text("entity,t\n")
    (tmp_path / "feed.json").write_text('{"name": "x", "crs": "planr"}')

    def refused(*options: str) -> str:
        with pytest.raises(CommandError) as error:
            call_command("play", str(tmp_path / "rows.csv"), *options)
        return str(error.value)

    assert "manage.py token USER" in refused("--feed", feed.name)
    assert f"did you mean '{feed.name}'?" in refused("--feed", feed.name[:-1], "--token", "vdt_x")
    assert "feed.json: /crs: " in refused("--feed", "there", "--token", "vdt_x", "--schema", str(tmp_path / "feed.json"))
    assert "none.json: No such file" in refused("--feed", "there", "--token", "vdt_x", "--schema", str(tmp_path / "none.json"))


def test_a_run_stops_when_nothing_arrives(play: Any, feed: Feed) -> None:
    with pytest.raises(CommandError, match=r"None of rows 5001 to 10000 was accepted: 0 late, 5000 dead") as lost:
        play(feed, [("a", T)] + [("a", T + 11 * 86_400_000 + n) for n in range(12_000)], "--rate", "max")
    assert lost.value.returncode == 3


def test_a_server_behind_tls_is_reached_by_its_name(settings: Any) -> None:
    assert server_url().startswith("http://127.0.0.1:")
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = True, [".vedette.example.org", "127.0.0.1"]
    assert server_url() == "https://vedette.example.org"
