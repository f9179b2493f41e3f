"""Every parameter of every GET, with invalid values: refused with 400 or
ignored, never a server error.

Addresses and their parameters are those of the OpenAPI document: a new one is tested automatically.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from io import BytesIO
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest
from drf_spectacular.generators import SchemaGenerator
from rest_framework.exceptions import ParseError
from rest_framework.test import APIClient
from rest_framework.throttling import SimpleRateThrottle

from engine.model.faults import Refused
from tests.examples import PROFILE
from tests.webapp.entry import server_entry
from webapp.config.parsers import Json, check_values

pytestmark = [pytest.mark.services, pytest.mark.django_db]

NUL = "a\x00b"
STRANGE = [
    NUL, "abc", "9" * 30, "-1", "1.5", "nan", "%", "-9223372036854775808", "9223372036854775806", "1,abc", ",,", "0,0,nan,1", "1,1,0,0",
    "cD1hYmM=", "cD05OTk5OTk5OTk5OTk5OTk5OTk5OTk5OTk=",
]  # fmt: skip
"""The two random-looking ones are cursors (base64) with the positions `abc`
and a number of 26 digits."""


def reads() -> Iterator[tuple[str, set[str]]]:
    """Each GET of the API with the names of its described parameters."""
    document = SchemaGenerator().get_schema(request=None, public=True)
    for path, operations in document["paths"].items():
        if "get" in operations:
            yield path, {one["name"] for one in operations["get"].get("parameters", []) if one["in"] == "query"}


def strange(number: int) -> list[str]:
    """NUL and a third of the others for the parameter of this number; at night all of them."""
    return STRANGE if PROFILE != "fast" else [NUL, *STRANGE[1 + number % 3 :: 3]]


PAGES = ["/", "/queries/", "/queries/new", "/alerts/", "/regions/", "/feeds/", "/account/"]
CASES = [*((path, named) for path, named in reads() if named), *((page, {"feed"}) for page in PAGES)]


@pytest.fixture
def places(people: SimpleNamespace, feed: Any, region: Any, query: Any, received: Any) -> dict[str, Any]:
    """Values for the placeholders of an address."""
    from webapp.alerts.deliveries import channel_create
    from webapp.alerts.models import Alert
    from webapp.alerts.shifts import shift_save

    received(feed, [{"entity": "a", "t": t, "x": 1.0, "y": 1.0} for t in range(3)])
    channel = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x", team=people.harbour)
    alert = Alert.objects.create(query=query, feed=feed, detection_key=b"k" * 16, kind="in", entities=["a"], start=1, severity="low")
    shift = shift_save(user=people.owner, name="duty")
    return {
        "regions": region.pk,
        "queries": query.pk,
        "channels": channel.pk,
        "alerts": alert.pk,
        "feeds": feed.name,
        "jobs": "main",
        "shifts": shift.pk,
    }


def filled(path: str, places: dict[str, Any]) -> str:
    parts = path.split("/")
    value = places.get(parts[3], 1) if len(parts) > 3 else 1
    for name, given in (("{name}", value), ("{id}", value), ("{pk}", value), ("{version}", 1), ("{key}", "00" * 16), ("{shift}", value)):
        path = path.replace(name, str(given))
    return path


@pytest.mark.parametrize(("path", "described"), CASES, ids=[path for path, _ in CASES])
def test_no_parameter_breaks_the_server(
    path: str,
    described: set[str],
    places: dict[str, Any],
    people: SimpleNamespace,
    client_of: Callable[..., APIClient],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SimpleRateThrottle, "rate", "100000/min", raising=False)
    monkeypatch.setattr(SimpleRateThrottle, "THROTTLE_RATES", dict.fromkeys(SimpleRateThrottle.THROTTLE_RATES, "100000/min"))
    client = client_of(people.root)
    client.raise_request_exception = False
    address = filled(path, places)
    assert "{" not in address, "say in `filled` what goes here"
    required = {"feed": "yard", "entity": "a", "column": "speed"}
    failed = []
    for number, name in enumerate(sorted(described), start=len(path)):
        others = "".join(f"&{key}={value}" for key, value in required.items() if key != name and key in described)
        for value in strange(number):
            answer = client.get(f"{address}?{name}={quote(value)}{others}")
            if answer.status_code >= 500 or (value == NUL and answer.status_code != 400):
                failed.append((name, value, answer.status_code))
    assert failed == []


BODIES: list[tuple[str, dict[str, Any]]] = [
    ("alerts/bulk", {"ids": [10**30], "action": "resolve"}),
    ("alerts/bulk", {"ids": [1], "action": "resolve", "comment": NUL}),
    ("regions/bulk", {"ids": [10**30], "action": "delete"}),
    ("regions/bulk", {"ids": [1], "action": "tag", "tags": [NUL]}),
    ("regions/", {"feed": NUL, "name": "x", "geometry": {"center": [0, 0], "radius": 1}}),
    ("regions/", {"feed": "yard", "name": NUL, "geometry": {"center": [0, 0], "radius": 1}}),
    ("regions/", {"feed": "yard", "name": "x", "geometry": {"center": [0, 0], "radius": 1}, "team": 10**30}),
    ("regions/", {"feed": "yard", "name": "x", "geometry": {"type": NUL}}),
    ("queries/", {"feed": "yard", "name": "x", "specification": {"family": NUL}}),
    ("queries/", {"feed": "yard", "name": "x", "specification": {"family": "border", "region": {"region": NUL}}}),
    ("queries/", {"feed": "yard", "name": "x", "channels": [10**30], "specification": {"family": "border", "region": {"region": "square"}}}),
    ("queries/remove", {"feed": "yard", "ids": [10**30], "dry_run": True}),
    ("queries/remove", {"feed": "yard", "names": [NUL], "search": NUL}),
    ("queries/check", {"feed": "yard", "specification": {"family": "border", "region": {"region": NUL}}}),
    ("queries/closure", {"feed": "yard", "specification": {"trigger": NUL}}),
    ("queries/pattern", {"feed": "yard", "specification": {"pattern": NUL}}),
    ("queries/gallery", {"feed": "yard", "template": NUL, "values": {NUL: NUL}}),
    ("channels/", {"name": NUL, "url": "https://hooks.example.org/"}),
    ("channels/", {"name": "x", "url": "https://hooks.example.org/" + NUL}),
    ("channels/", {"name": "x", "url": "https://hooks.example.org/", "queries": [10**30]}),
    ("channels/", {"name": "x", "url": "https://hooks.example.org/", "per_minute": 10**30}),
    ("feeds/", {"name": NUL, "title": "x", "crs": "planar"}),
    ("feeds/", {"name": "new", "title": NUL, "crs": "planar"}),
    ("feeds/", {"name": "new", "title": "x", "crs": "planar", "lateness": 10**30}),
    ("feeds/", {"name": "new", "title": "x", "crs": "planar", "retention_hours": 10**30}),
    ("feeds/", {"name": "new", "title": "x", "crs": "planar", "columns": {NUL: "float"}}),
    ("feeds/", {"name": "new", "title": "x", "crs": "planar", "view": {"center": [NUL]}}),
    ("tokens/", {"name": NUL, "scopes": ["read"]}),
    ("tokens/", {"name": "x", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-12:00"}),
]


@pytest.mark.parametrize(("path", "body"), BODIES, ids=[f"{number} {path}" for number, (path, _) in enumerate(BODIES)])
def test_no_body_breaks_the_server(
    path: str, body: dict[str, Any], places: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    client = client_of(people.root)
    client.raise_request_exception = False
    assert client.post(f"/api/v1/{path}", body).status_code < 500


@pytest.mark.parametrize("address", ["channels/", "feeds/yard/overlays/", "routing-rules/", "connectors/trial"])
def test_a_lone_surrogate_is_refused_everywhere(address: str, feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    half = '{"name": "a", "feed": "yard", "url": "https://example.org/HERE", "settings": {"x": ["HERE"]}, "document": {"HERE": 1}}'
    for text, is_refused in (("\\ud800", True), ("\\ud83d\\ude00", False)):
        answer = client_of(people.owner).post(f"/api/v1/{address}", half.replace("HERE", text), content_type="application/json")
        assert answer.status_code < 500 and ("half a character (a lone surrogate): U+D800" in answer.content.decode()) is is_refused


def test_the_number_of_objects_in_a_list_is_limited(query: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.owner)
    for address, field, one in (("routing-rules/", "queries", query.pk), ("routing-rules/", "people", "owner"), ("channels/", "queries", query.pk)):
        answer = client.post(f"/api/v1/{address}", {"name": "a", field: [one] * 1_001}, format="json")
        assert {"pointer": f"/{field}", "message": "At most 1,000; these are 1,001."} in answer.json()["faults"]
    for id_, message in ((10**6, "There is none with the id 1000000 that you may see."), ("x", "An id: a whole number.")):
        answer = client.post("/api/v1/channels/", {"name": "a", "queries": [id_]}, format="json")
        assert {"pointer": "/queries/0", "message": message} in answer.json()["faults"]
    tags = client.post("/api/v1/routing-rules/", {"name": "a", "tags": ["x"] * 101, "people": ["owner"]}, format="json")
    assert tags.status_code == 400 and tags.json()["faults"][0]["pointer"] == "/tags"


@pytest.mark.parametrize(("method", "address", "field"), [("put", "feeds/yard/profile?id=a", "attributes"), ("patch", "me/quotas", "limits")])
def test_the_number_of_values_in_an_object_is_limited(
    method: str, address: str, field: str, feed: Any, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    address = address.replace("me/quotas", f"people/{people.owner.pk}/quotas")
    answer = getattr(client_of(people.root), method)(f"/api/v1/{address}", {field: {f"k{n}": {} for n in range(1_001)}}, format="json")
    assert answer.json()["faults"] == [{"pointer": f"/{field}", "message": "At most 1,000; these are 1,001."}]


@pytest.fixture
def handler(db: None) -> Any:
    """The application that the web server calls."""
    application: Any = server_entry()
    return application.application_mapping["http"]


@pytest.mark.parametrize("charset", ["zlib", "rot13", "idna", "punycode", "undefined", "utf-8", "latin-1", "nobody-knows-this"])
def test_no_charset_breaks_a_request(charset: str, handler: Any) -> None:
    form = b'--b\r\nContent-Disposition: form-data; name="login"\r\n\r\nx\r\n--b--\r\n'
    headers = [(b"content-type", f"multipart/form-data; boundary=b; charset={charset}".encode()), (b"content-length", b"%d" % len(form))]
    scope = {"type": "http", "method": "POST", "path": "/login/", "query_string": b"page=1", "headers": headers}
    request, refusal = handler.create_request(scope, BytesIO(form))
    assert refusal is None and request.GET["page"] == "1" and request.POST["login"] == "x"
    assert (request.encoding == charset) == (charset in ("utf-8", "latin-1")), "encodings of texts count"


@pytest.mark.parametrize("parameter", ["charset*=utf-8''a%00b", "x*=nobody''%ff"])
def test_no_parameter_of_a_content_type_breaks_a_request(parameter: str, handler: Any) -> None:
    headers = [(b"content-type", f"text/plain; {parameter}".encode())]
    scope = {"type": "http", "method": "POST", "path": "/login/", "query_string": b"page=1", "headers": headers}
    request, refusal = handler.create_request(scope, BytesIO(b""))
    assert refusal is None and request.GET["page"] == "1"


def test_json_is_read_as_utf_8_whatever_charset_is_named() -> None:
    with pytest.raises(ParseError):
        Json().parse(BytesIO('{"name": "a"}'.encode("utf-16")), "application/json", {"encoding": "utf-16"})
    with pytest.raises(Refused):
        Json().parse(BytesIO(rb'{"name": "a\u0000"}'), "application/json", {"encoding": "cp037"})


def test_a_long_document_is_checked_in_one_walk() -> None:
    """Its last value is the fault, and its key is long."""
    document = {"k" * 100_000: [*range(200_000), math.inf]}
    with pytest.raises(Refused) as refused:
        check_values(document, b"1e999")
    assert refused.value.faults[0].pointer.endswith("k/200000")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ('{"name": "a", "parameters": "state=new", "team": 1e999}', "/team"),
        ('{"name": "a", "parameters": "state=new", "team": -' + "9" * 400 + ".0}", "/team"),
        ('{"name": "a\\u0000", "parameters": "state=new"}', "/name"),
        ('{"name": "a", "parameters": [{"b/c": "\\u0000"}]}', "/parameters/0/b~1c"),
        ('{"name": "a", "parameters": "state=new", "team": NaN}', "/team"),
        ('{"name": "a", "parameters": "state=new", "team": -Infinity}', "/team"),
        ('{"name": "a", "parameters": "state=new", "team": ' + "9" * 5_000 + "}", "/team"),
        ('{"name": "a", "parameters": "state=new", "parameters": ""}', "/parameters"),
        ('{"name": "a", "parameters": [{"a": {"b": 1, "b": 2}}, 1]}', "/parameters/0/a/b"),
        ('{"name": "a", "name": {"b": 1, "b": 2}, "parameters": ""}', "/name"),
        ('{"name": "a", "parameters": "state=new", "team": 1.5}', "/team"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(
    body: str, pointer: str, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    answer = client_of(people.owner).post("/api/v1/alert-views/", body, content_type="application/json")
    assert answer.status_code == 400 and [fault["pointer"] for fault in answer.json()["faults"]] == [pointer]


def test_no_message_repeats_a_long_text(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.owner).patch("/api/v1/me", {"units": "x" * 1_000_000}, format="json")
    (fault,) = answer.json()["faults"]
    assert answer.status_code == 400 and len(fault["message"]) < 300 and fault["message"].endswith("Known: imperial, metric, nautical")


def test_a_message_is_bounded(things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    answer = client_of(people.owner).post(f"/api/v1/alerts/{things['alert'].pk}/assign", {"assignee": "x" * 1_000_000}, format="json")
    assert answer.status_code == 400 and len(answer.content) < 5_000
    assert answer.json()["faults"][0]["message"].endswith("somebody who may handle the alert.")


def test_a_reading_with_a_nul_is_refused(things: dict[str, Any], people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    attribute = {"source": "a\x00", "name": "speed", "type": "float"}
    reading = {"entity": ["mmsi"], "time": ["received"], "time_format": "epoch_ms", "x": "lon", "y": "lat", "crs": "plane", "attributes": [attribute]}
    answer = client_of(people.owner).patch(f"/api/v1/connectors/{things['connector'].pk}/", {"reading": reading}, format="json")
    assert answer.status_code == 400
    assert answer.json()["faults"] == [
        {"pointer": "/reading/attributes/0/source", "message": "A text must not contain the character NUL: remove it."}
    ]


def test_faults_of_a_list_name_the_place(people: SimpleNamespace, query: Any, client_of: Callable[..., APIClient]) -> None:
    body = {"name": "x", "url": "https://hooks.example.org/x", "queries": [query.pk, 10**6, 1.5]}
    answer = client_of(people.owner).post("/api/v1/channels/", body, format="json")
    assert [fault["pointer"] for fault in answer.json()["faults"]] == ["/queries/1", "/queries/2"]


def test_no_more_faults_of_a_list_are_looked_for_than_are_shown() -> None:
    from rest_framework import serializers

    from webapp.config.related import BoundedListField

    seen: list[Any] = []

    class Seen(serializers.IntegerField):
        def run_validation(self, data: Any = None) -> Any:
            seen.append(data)
            return super().run_validation(data)

    with pytest.raises(serializers.ValidationError) as refused:
        BoundedListField(child=Seen(), max_length=10_000).run_validation(["x"] * 10_000)
    assert len(seen) == 500 == len(refused.value.detail)
