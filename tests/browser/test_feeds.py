"""The page Feeds: feeds are created and changed, and a feed with a damaged log shows what to do."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import paho.mqtt.client as paho
import pytest
from django.conf import settings
from paho.mqtt.enums import CallbackAPIVersion

from tests.browser.accessibility import violations
from tests.browser.answering import Answering
from tests.engine.sources.live.brokers import broker
from webapp.feeds.ingest import event_log
from webapp.feeds.models import Connector, Feed
from webapp.queries.models import Query
from webapp.queries.services import query_register

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page, Route

    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

T0 = 1_767_348_000
BORDER = {"family": "border", "version": 1, "region": {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}}
BOATS = "".join(f"Möwe {n % 2};{T0 + n};10,{n:03};54,5;12,5\n" for n in range(400))
CSV = f"Schiff;Zeit;lon;lat;Knoten\n{BOATS}x;bald;1;2;3\n"


def track(first: int, points: int) -> str:
    """A walker who moves north, from a second after ten o'clock on."""
    seconds = range(first, first + points)
    found = "".join(f'<trkpt lat="{52 + n / 1000}" lon="13.4"><time>2026-01-02T10:{n // 60:02}:{n % 60:02}Z</time></trkpt>' for n in seconds)
    return f"<gpx><trk><name>Ada</name><trkseg>{found}</trkseg></trk></gpx>"


GPX = track(0, 200)
NMEA = "".join(f"\\c:{1565218798 + n}*00\\!BSVDM,1,1,,A,13mb9U0P00PRk8fT5nw>4?wj2006,0*5D\n" for n in range(50))
FILES = [("Schiffe.csv", CSV.encode("windows-1252"), 400), ("walk.gpx", GPX.encode(), 200), ("ships.nmea", NMEA.encode(), 50)]


def test_a_damaged_feed_names_the_file_and_the_remedy_and_continues_after_repair(site: Site) -> None:
    from django.core.management import call_command

    site.world.append(50)
    (segment,) = site.world.log.live.glob("*.parquet")
    segment.write_bytes(segment.read_bytes()[:100])
    site.log_in()
    site.page.goto(site.address + "/feeds/")
    card = site.page.get_by_role("article", name="Feed yard")
    card.locator("[data-state=damaged]").wait_for()
    assert card.locator("[data-state=damaged]").inner_text() == "Suspended"
    card.get_by_text(re.compile(rf"{segment.name}.*manage\.py repair yard")).first.wait_for()
    call_command("repair", "yard", verbosity=0)
    card.locator("[data-state=new]").wait_for()
    assert site.faults == []


def test_a_feed_is_created_and_its_limit_for_future_rows_is_changed(site: Site) -> None:
    site.log_in()
    page = site.page
    page.goto(site.address + "/feeds/")
    page.get_by_role("link", name="New feed").click()
    page.get_by_role("button", name="Without a file").click()
    form = page.get_by_role("dialog", name="New feed")
    form.get_by_label("Name").fill("Quay 1")
    form.get_by_label("Places").select_option("planar")
    form.get_by_label("Times", exact=True).select_option("ms")
    form.get_by_label("Other columns").fill("speed: float\nkind: string")
    form.get_by_label("How far ahead of the clock a row may be").select_option("bound")
    form.get_by_label("At most", exact=True).fill("90")
    form.get_by_label("Unit: At most").select_option("s")
    form.get_by_role("button", name="Make feed").click()
    form.get_by_role("alert").first.wait_for()
    form.get_by_label("Name").fill("quay")
    form.get_by_role("button", name="Make feed").click()
    page.get_by_role("article", name="Feed quay").wait_for()
    feed = Feed.objects.get(name="quay")
    assert (feed.crs, feed.ahead, feed.columns) == ("planar", 90_000, {"speed": "float", "kind": "string"})
    assert feed.team is not None

    page.get_by_role("button", name="Settings of the feed quay").click()
    form = page.get_by_role("dialog", name="Settings of quay")
    assert form.get_by_label("At most", exact=True).input_value() == "90"
    form.get_by_label("How far ahead of the clock a row may be").select_option("none")
    form.get_by_role("button", name="Save").click()
    form.wait_for(state="detached")
    feed.refresh_from_db()
    assert feed.ahead is None
    # The one fault is the refused name.
    assert [fault for fault in site.faults if "400" not in fault] == []


def test_files_of_three_kinds_become_feeds_by_mouse_alone(site: Site, tmp_path: Path) -> None:
    site.world.start(sys.executable, "manage.py", "ingest", name="ingest")
    site.log_in()
    page = site.page
    for name, data, count in FILES:
        (tmp_path / name).write_bytes(data)
        page.goto(site.address + "/feeds/")
        page.get_by_role("link", name="New feed").first.click()
        if name == "Schiffe.csv":
            _cannot_be_loaded_before_it_is_looked_into(page, tmp_path / name)
        else:
            # As a log-in in another tab does, which makes a new token.
            site.context.clear_cookies(name=settings.CSRF_COOKIE_NAME)
            page.locator("#wizard-file").set_input_files(tmp_path / name)
        page.get_by_text("The first rows, as they are in the file").wait_for()
        if name == "Schiffe.csv":
            # The guess is right; the user tries another delimiter and returns.
            page.get_by_text("1 of 401 rows cannot be used").wait_for()
            page.get_by_label("Columns are separated by").select_option("|")
            page.get_by_text("no column has the time").first.wait_for()
            page.get_by_label("Columns are separated by").select_option(";")
            page.get_by_text("1 of 401 rows cannot be used").wait_for()
        page.get_by_role("button", name="Make the feed and load the file").click()
        page.locator(".wizard-load[data-state=done]").wait_for()
        page.get_by_text(f"{count} of {count} rows loaded").wait_for()
        assert page.get_by_role("link", name="Make a query").is_visible()
    assert sorted(Feed.objects.exclude(name="yard").values_list("name", flat=True)) == ["schiffe", "ships", "walk"]
    assert Feed.objects.get(name="schiffe").columns == {"knoten": "float"}

    _add_a_second_file(site, tmp_path)
    _load_as_if_it_happened_now(site, tmp_path)
    page.goto(site.address + "/feeds/new")
    page.get_by_role("button", name="Play: Ships in a strait").click()
    page.wait_for_url("**/?feed=strait**")
    assert Feed.objects.get(name="strait").queries.count() == 3
    assert ["403" in fault and fault.endswith("/uploads/") for fault in site.faults] == [True] * (len(FILES) - 1)


def test_one_click_loads_a_real_recording_and_shows_its_first_answers(site: Site) -> None:
    site.world.start(sys.executable, "manage.py", "ingest", name="ingest")
    site.log_in()
    page = site.page
    page.goto(site.address + "/feeds/new")
    card = page.get_by_role("listitem").filter(has_text="Atlantic storms of 2005")
    for text in ("Real recording", "901 rows · 8 Jun 2005 – 7 Jan 2006", "Licence: Public domain", "Category five"):
        card.get_by_text(text).wait_for()
    page.get_by_role("button", name="Load: Atlantic storms of 2005").click()
    page.wait_for_url("**/?feed=storms&window=*")
    feed = Feed.objects.get(name="storms")
    # The moment of the landfall, without a further click.
    when = page.get_by_label("Go to a date and time")
    page.wait_for_function("field => field.value === '29 Aug 2005, 11:00:00'", arg=when.element_handle())
    assert Answering(site.world, feed).catch_up() > 0
    # The time range is Katrina's: every question except that for two storms has an answer in it.
    site.world.wait(lambda: page.locator(".query-count", has_text=re.compile(r"[1-9]")).count() == 6, 60, "answers of six queries")
    for wish, said in (("1990-01-01 00:00:00", "The first rows are of 8 Jun 2005"), ("2090-01-01 00:00:00", "That is in the future")):
        when.fill(wish)
        when.press("Enter")
        page.get_by_text(said).wait_for()
    assert site.faults == []


@pytest.fixture
def no_recordings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VEDETTE_DATA", str(tmp_path / "none"))


def test_a_sample_without_its_recording_is_built_from_a_chosen_file(no_recordings: None, site: Site, tmp_path: Path) -> None:
    site.world.start(sys.executable, "manage.py", "ingest", name="ingest")
    file = tmp_path / "buses.csv"
    file.write_text("bus,t,lon,lat\n14,2026-01-26T16:00:00Z,-2.9779,53.4084\n14,2026-01-26T16:10:00Z,-2.9,53.5\n")
    site.log_in()
    page = site.page
    page.goto(site.address + "/feeds/new")
    page.get_by_text("recordings that are not included").click()
    page.get_by_label("File of Aircraft near Zurich").set_input_files(file)
    page.get_by_text("The file does not fit the sample").wait_for()
    page.get_by_role("link", name="Load buses.csv without the sample's queries").wait_for()
    page.get_by_label("File of Buses of route 14 in Liverpool").set_input_files(file)
    page.wait_for_url("**/?feed=buses*")
    assert Feed.objects.get(name="buses").queries.count() == 3
    # The only fault is the unsuitable file.
    assert [fault for fault in site.faults if "400" not in fault] == []


def _cannot_be_loaded_before_it_is_looked_into(page: Page, file: Path) -> None:
    asked: list[Route] = []
    page.route("**/inspection", lambda route: asked.append(route))
    page.locator("#wizard-file").set_input_files(file)
    page.get_by_text("The server inspects the file").wait_for()
    assert page.get_by_role("button", name="Make the feed and load the file").is_disabled()
    picture(page, "looked-into")
    while not asked:
        page.wait_for_timeout(50)
    asked[0].continue_()
    page.unroute("**/inspection")


def _add_a_second_file(site: Site, folder: Path) -> None:
    """Half of its rows are duplicates or too old, and are left out."""
    page = site.page
    (folder / "second.gpx").write_text(track(150, 100))
    page.goto(site.address + "/feeds/")
    page.get_by_role("link", name="Add a file to the feed walk").click()
    page.locator("#wizard-file").set_input_files(folder / "second.gpx")
    taken = page.get_by_text("How the feed uses it").locator("xpath=..")
    taken.get_by_text("the feed's clock has passed them").wait_for()
    picture(page, "second-file")
    page.get_by_role("button", name="Load the file into the feed").click()
    page.locator(".wizard-load[data-state=done]").wait_for()
    page.get_by_text("51 of 51 rows loaded, 49 late").wait_for()
    picture(page, "second-file-loaded")


def _load_as_if_it_happened_now(site: Site, folder: Path) -> None:
    """A walk of two seconds, replayed in real time."""
    page = site.page
    (folder / "stroll.gpx").write_text(track(0, 3))
    page.goto(site.address + "/feeds/new")
    page.locator("#wizard-file").set_input_files(folder / "stroll.gpx")
    page.get_by_text("The first rows, as they are in the file").wait_for()
    page.get_by_label("As if it happened now").check()
    page.get_by_label("Playback speed").select_option("1")
    picture(page, "as-now")
    begun = time.time() * 1000
    page.get_by_role("button", name="Make the feed and load the file").click()
    page.locator(".wizard-load[data-state=done]").wait_for()
    picture(page, "as-now-loaded")
    feed = Feed.objects.get(name="stroll")
    times = [row["t"] for table in event_log(feed.name).read() for row in table.to_pylist() if row["event"] == "position"]
    # Rows that are sent late get the time of sending, so the times between rows are
    # as in the file, or longer.
    assert feed.wall_clock and begun <= times[0] <= times[1] - 1_000 <= times[2] - 2_000


def picture(page: Page, name: str) -> None:
    """Takes a screenshot, if a folder for screenshots is set."""
    if folder := os.environ.get("VEDETTE_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


@pytest.fixture
def inner_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allows the processes of the site to connect to this machine."""
    monkeypatch.setenv("VEDETTE_WEBHOOK_NETWORKS", "127.0.0.0/8")


def test_a_broker_is_tested_and_becomes_a_stream(inner_network: None, site: Site, tmp_path: Path) -> None:
    with broker(tmp_path / "broker") as server:
        sender = paho.Client(CallbackAPIVersion.VERSION2)
        sender.connect("127.0.0.1", server.port)
        sender.loop_start()
        sender.publish("fleet/van7", b'{"time": "2026-01-02T03:04:05Z", "x": 3.5, "y": 4}', qos=1, retain=True).wait_for_publish(30)
        for name in ("doors", "steps"):
            query_register(owner=site.world.feed.owner, feed=site.world.feed, name=name, specification=BORDER)
        site.log_in()
        page = site.page
        page.goto(site.address + "/feeds/")
        page.get_by_role("button", name="Connectors of the feed yard").click()
        page.get_by_role("button", name="Add connector").click()
        form = page.get_by_role("dialog", name="Add connector")
        form.get_by_label("Protocol").select_option("mqtt")
        form.get_by_label("Name", exact=True).fill("Fleet")
        form.get_by_label("Host").fill("127.0.0.1")
        form.get_by_role("button", name="Test").click()
        form.get_by_role("alert").first.wait_for()
        form.get_by_label("Port").fill(str(server.port))
        form.get_by_label("Topics").fill("fleet/{entity}")
        form.get_by_role("button", name="Test").click()
        form.get_by_text("Rows of the feed").wait_for()
        assert (form.get_by_label("Entity", exact=True).input_value(), form.get_by_label("Time", exact=True).input_value()) == ("entity", "time")
        picture(page, "connector")
        form.get_by_role("button", name="Save").click()
        form.wait_for(state="detached")
        site.world.start(sys.executable, "manage.py", "connect", name="connect")
        row = page.get_by_role("dialog").get_by_role("listitem", name="Fleet")
        row.locator("[data-state=running]").wait_for()
        row.get_by_text("1 row ·").wait_for()
        sender.loop_stop()
        _choose_queries_whose_answers_go_out(site, server.port)
    row.locator("[data-state=backoff]").wait_for()
    row.get_by_text(re.compile("The broker|cannot be reached")).wait_for()
    # The faults are those of the first attempt, without a port and a topic.
    assert [fault for fault in site.faults if "400" not in fault] == []


class Vehicles(BaseHTTPRequestHandler):
    """An address whose vehicles come later."""

    body = b'{"vehicles": []}'

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(Vehicles.body)))
        self.end_headers()
        self.wfile.write(Vehicles.body)

    def log_message(self, *arguments: object) -> None:
        pass


def test_a_second_test_guesses_again_until_someone_changes_the_guess(inner_network: None, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Vehicles) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site.log_in()
        page = site.page
        page.goto(site.address + "/feeds/")
        page.get_by_role("button", name="Connectors of the feed yard").click()
        page.get_by_role("button", name="Add connector").click()
        form = page.get_by_role("dialog", name="Add connector")
        form.get_by_label("Protocol").select_option("poll")
        form.get_by_label("Address").fill(f"http://127.0.0.1:{server.server_port}/")
        entity, time_of = form.get_by_label("Entity", exact=True), form.get_by_label("Time", exact=True)
        _tried(page)
        assert (entity.input_value(), time_of.input_value()) == ("", "received")
        monkeypatch.setattr(Vehicles, "body", b'{"vehicles": [{"id": "tram1", "when": "2026-01-02T03:04:05Z", "longitude": 3.5, "latitude": 4}]}')
        _tried(page)
        assert (entity.input_value(), time_of.input_value()) == ("id", "when")
        entity.fill("when")
        _tried(page)
        assert (entity.input_value(), time_of.input_value()) == ("when", "when")
        form.locator("#connector-path").fill("vehicles[?id==`none`]")
        _tried(page)
        # The result at the end of a long form is not hidden by its foot.
        said = form.get_by_text("received nothing within ten seconds").bounding_box()
        foot = form.locator(".dialog-foot").bounding_box()
        assert said and foot and said["y"] + said["height"] <= foot["y"]
        server.shutdown()
    assert site.faults == []


def _tried(page: Page) -> None:
    with page.expect_response("**/connectors/trial"):
        page.get_by_role("button", name="Test", exact=True).click()
    page.wait_for_function("() => [...document.querySelectorAll('.connector-form button')].every((one) => !one.hasAttribute('aria-disabled'))")


def _choose_queries_whose_answers_go_out(site: Site, port: int) -> None:
    """Chooses queries by name; the choice is in the form when it is opened again."""
    page, chosen = site.page, Query.objects.get(name="doors")
    page.get_by_role("button", name="Add connector").click()
    form = page.get_by_role("dialog", name="Add connector")
    form.get_by_label("Protocol").select_option("mqtt-answers")
    form.get_by_label("Name", exact=True).fill("Out")
    form.get_by_label("Host").fill("127.0.0.1")
    form.get_by_label("Port").fill(str(port))
    form.get_by_label("Topic", exact=True).fill("answers")
    form.get_by_label("Some queries").check()
    form.get_by_role("button", name="Save").click()
    form.get_by_role("alert").get_by_text("No query is chosen").wait_for()
    form.get_by_role("group", name="Queries").get_by_text("steps").wait_for()
    form.get_by_label("Find a query by its name").fill("DOO")
    form.get_by_role("group", name="Queries").get_by_text("steps").wait_for(state="detached")
    form.get_by_label("doors").check()
    form.get_by_text("1 query is chosen.").wait_for()
    # A CA certificate has several lines; the form has its field if the connection is encrypted.
    assert not form.get_by_label("Certificate of the authority").is_visible()
    form.get_by_label("Encrypted (TLS)").check()
    form.get_by_label("Certificate of the authority").fill("one\ntwo")
    form.get_by_label("Encrypted (TLS)").uncheck()
    picture(page, "connector-out")
    form.get_by_role("button", name="Save").click()
    form.wait_for(state="detached")
    made = Connector.objects.get(name="Out").settings
    assert (made["queries"], made["ca"]) == (str(chosen.pk), "")
    page.get_by_role("button", name="Edit Out").click()
    page.get_by_label("doors").wait_for()
    assert page.get_by_label("doors").is_checked() and not page.get_by_label("steps").is_checked()
    page.get_by_role("dialog", name="Connector Out").get_by_role("button", name="Cancel").click()


def test_dead_letters_are_mended_by_a_rule_and_by_hand(site: Site) -> None:
    from webapp.feeds.models import DeadLetter
    from webapp.feeds.recent import newest_rows

    feed = site.world.feed
    for row in ({"entity": "north", "t": 1000, "x": "1,5", "y": 2}, {"entity": "south", "t": 1001, "x": "east", "y": 2}):
        DeadLetter.objects.create(feed=feed, reason="wrong_type", detail="column 'x' must be of type float", row=row)
    rounded = {"entity": "west", "t": 1002, "x": "west", "serial": 2**53 + 1}
    DeadLetter.objects.create(feed=feed, reason="wrong_type", detail="column 'x' must be of type float", row=rounded)
    site.log_in()
    page = site.page
    page.goto(f"{site.address}/feeds/")
    page.get_by_role("button", name="Dead letters").click()
    page.get_by_role("button", name="Correct all and send them again").click()
    page.get_by_text("1 sent, 2 still wrong").wait_for()
    page.get_by_text("A number has more digits than a browser keeps").wait_for()
    page.get_by_text("Corrected and sent at").wait_for()
    page.get_by_role("button", name="Correct", exact=True).click()
    page.get_by_label("x", exact=True).fill("7")
    picture(page, "letters")
    page.get_by_role("button", name="Send it").click()
    page.get_by_text("1 sent.").wait_for()
    rows = newest_rows(feed, 100, ["entity", "x"]).to_pylist()
    assert {row["entity"]: row["x"] for row in rows} == {"north": 1.5, "south": 7.0}
    assert site.faults == []


def test_all_dead_letters_can_be_reached_and_counts_say_of_how_many_they_are(site: Site) -> None:
    from webapp.feeds.models import DeadLetter

    oldest = {"entity": "north", "t": 1000, "x": "east", "y": 2}
    letters = [DeadLetter(feed=site.world.feed, reason="wrong_type", detail="no number", row=oldest)]
    letters += [DeadLetter(feed=site.world.feed, reason="malformed", detail="no JSON", row={"text": str(n)}) for n in range(130)]
    DeadLetter.objects.bulk_create(letters)
    site.log_in()
    page = site.page
    page.goto(f"{site.address}/feeds/")
    page.get_by_role("button", name="Dead letters").click()
    page.get_by_text("Not readable × 100").wait_for()
    page.get_by_text("Of the newest 100: there are more.").wait_for()
    page.get_by_role("button", name="Show more").click()
    page.get_by_role("button", name="Show more").click()
    page.get_by_text("Not readable × 130").wait_for()
    page.get_by_text("there are more").wait_for(state="detached")
    assert page.get_by_role("button", name="Show more").count() == 0
    page.get_by_role("button", name="Correct", exact=True).last.click()
    assert page.get_by_label("x", exact=True).input_value() == "east"
    assert site.faults == []


def test_a_feed_is_shared_gets_a_plan_and_its_deletion_counts_its_contents(site: Site) -> None:
    from io import BytesIO

    from PIL import Image

    site.world.append(60)
    feed, image = site.world.feed, BytesIO()
    Image.new("RGB", (40, 30), "white").save(image, "PNG")
    site.log_in()
    page = site.page
    page.goto(f"{site.address}/feeds/")
    page.get_by_role("button", name="Settings of the feed yard").click()
    page.get_by_label("Title").fill("The long yard")
    page.get_by_label("All logged-in users may read it").check()
    page.get_by_label("Team").select_option(label="watch")
    page.get_by_label("Plan below the map").set_input_files([{"name": "plan.png", "mimeType": "image/png", "buffer": image.getvalue()}])
    picture(page, "feed-settings")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_text("Saved.").wait_for()
    feed.refresh_from_db()
    assert (feed.title, feed.public, feed.team.name, bool(feed.plan_image)) == ("The long yard", True, "watch", True)

    page.get_by_role("button", name="Settings of the feed yard").click()
    page.get_by_role("button", name="Delete feed…").click()
    page.get_by_text("Remove its queries first").wait_for()
    Query.objects.update(deleted_at="2026-01-01T00:00:00Z")
    page.get_by_role("button", name="Settings of the feed yard").click()
    page.get_by_role("button", name="Delete feed…").click()
    page.get_by_text(f"This also removes {site.world.log.end[0]:,} rows").wait_for()
    page.get_by_role("button", name="Delete feed", exact=True).click()
    page.get_by_text("No feed yet").wait_for()
    assert not Feed.objects.exists()
    assert site.faults == []


def test_pages_without_a_feed_have_their_title_and_say_what_to_do(site: Site) -> None:
    Query.objects.all().delete()
    Feed.objects.all().delete()
    site.log_in()
    page = site.page
    for path, title, link in (
        ("/", "Live view", "New feed"),
        ("/regions/", "Regions", "Feeds and jobs"),
        ("/queries/new", "New query", "There are no feeds yet: create one first"),
    ):
        page.goto(site.address + path)
        page.get_by_role("main").get_by_role("link", name=link).first.wait_for()
        assert page.get_by_role("heading", level=1).all_inner_texts() == [title]
        assert page.locator("#page > svg").count() == 0, "no symbol is outside the text"
        assert violations(page) == []
    assert site.faults == []
