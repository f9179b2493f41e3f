"""Users, a feed and clients for the web application's tests; no Redis is needed for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

if TYPE_CHECKING:
    # This module is read before the settings are.
    from rest_framework.test import APIClient

Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def alone(settings: Any, tmp_path: Path) -> None:
    """Cache and channel layer in memory, files in a folder of the test."""
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": str(tmp_path)}}
    settings.CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}}
    settings.REDIS_URL = ""
    settings.EVENT_LOG_ROOT = tmp_path / "log"
    settings.CHECKPOINT_ROOT = tmp_path / "checkpoints"
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True, scope="session")
def described() -> Iterator[None]:
    """Each answer of the API that a test gets conforms to the OpenAPI document."""
    from django.test import Client

    from tests.webapp.openapi import JSON, check

    sent = Client.request

    def request(client: Client, **environ: Any) -> Any:
        response: Any = sent(client, **environ)
        if not response.streaming and response.headers.get("Content-Type", "").startswith(JSON):
            check(environ["REQUEST_METHOD"], environ["PATH_INFO"], response.status_code, response.content)
        return response

    Client.request = request  # type: ignore[method-assign]
    yield
    Client.request = sent  # type: ignore[method-assign]


def at_each_place(folder: Sequence[str], store: Sequence[str]) -> pytest.MarkDecorator:
    """A test of a crash, at `place`: of a log in a folder, and of one on shared storage."""
    forms = {"folder": folder, "store": store}
    return pytest.mark.parametrize(
        ("log_form", "place"), [(form, place) for form, places in forms.items() for place in places], indirect=["log_form"]
    )


@pytest.fixture(params=["folder", "store"])
def log_form(request: pytest.FixtureRequest, settings: Any, tmp_path: Path) -> str:
    """Logs are in a folder of this machine, then on shared storage."""
    settings.VEDETTE_LOG_STORE = "" if request.param == "folder" else str(tmp_path / "store")
    return str(request.param)


@pytest.fixture
def people(db: None) -> SimpleNamespace:
    """An owner, one member of the harbour team for each role, and a stranger
    with a team of their own."""
    from webapp.accounts.models import Membership, Role, Team, User

    harbour, elsewhere = Team.objects.create(name="harbour"), Team.objects.create(name="elsewhere")
    found = {name: User.objects.create_user(name, password=f"{name} has a password") for name in ("owner", *Role.values, "stranger")}
    Membership.objects.bulk_create(Membership(user=found[role], team=harbour, role=role) for role in Role.values)
    Membership.objects.create(user=found["stranger"], team=elsewhere, role=Role.ADMIN)
    Membership.objects.create(user=found["owner"], team=Team.objects.create(name="owners"), role=Role.OPERATOR)
    root = User.objects.create_superuser("root", password="root has a password")
    return SimpleNamespace(**found, root=root, harbour=harbour, elsewhere=elsewhere)


@pytest.fixture
def feed(people: SimpleNamespace) -> Any:
    """A planar feed of the harbour team, taken up by the default job."""
    from webapp.feeds.services import feed_create

    return feed_create(
        owner=people.owner,
        name="yard",
        title="The yard",
        crs="planar",
        time="ms",
        lateness=1000,
        team=people.harbour,
        columns={"speed": "float", "kind": "string"},
    )


@pytest.fixture
def client_of() -> Callable[[Any], APIClient]:
    """A client with the user's session; null: anonymous."""

    from rest_framework.test import APIClient

    def make(user: Any) -> APIClient:
        client = APIClient()
        if user is not None:
            client.force_login(user)
        return client

    return make


SQUARE = {"type": "Polygon", "coordinates": [[[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]]}
BORDER = {"family": "border", "version": 1, "region": SQUARE}


@pytest.fixture
def region(people: SimpleNamespace, feed: Any) -> Any:
    """A square from (0, 0) to (10, 10), of the team."""
    from webapp.feeds.services import region_create

    return region_create(owner=people.owner, feed=feed, name="square", geometry=SQUARE, team=people.harbour, tags=["dock"])


@pytest.fixture
def query(people: SimpleNamespace, feed: Any, region: Any) -> Any:
    """Everything that enters or leaves the square; entering opens an alert."""
    from webapp.queries.services import query_register

    return query_register(
        owner=people.owner,
        feed=feed,
        name="In and out",
        specification={"family": "border", "version": 1, "region": {"region": "square"}},
        alert_kinds=["in"],
        team=people.harbour,
    )


ARROW = {"string": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}


@pytest.fixture
def received() -> Callable[[Any, Rows], None]:
    """Puts rows of (entity, t, x, y and attributes) into a feed's log, as ingest does."""
    from webapp.feeds.recent import log_of

    def put(feed: Any, rows: Rows) -> None:
        schema = pa.schema([(name, ARROW[kind]) for name, kind in feed.engine_feed().types.items()])
        log_of(feed).append(pa.Table.from_pylist([{"event": "position", **row} for row in rows], schema=schema))

    return put
