"""The demo: users, feeds, regions, queries and the simulators' token. Seeding may be repeated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.db import transaction

from webapp.accounts.models import ApiToken, Membership, Role, Scope, Team, User
from webapp.accounts.services import token_authenticate, token_create
from webapp.demo.simulation import plaza, warehouse
from webapp.demo.simulation.city import City
from webapp.demo.simulation.scenarios import Scenario, read_scenario
from webapp.demo.simulation.world import Place
from webapp.demo.simulation.worlds import WORLDS
from webapp.feeds.credentials import token_keep, token_kept
from webapp.feeds.models import Feed, Region
from webapp.feeds.services import feed_create, feed_set_plan, region_create
from webapp.overlays.services import overlay_keep
from webapp.queries.selectors import query_names
from webapp.queries.services import query_register

TEAM = "Demo"
PLANS: dict[str, Callable[[], bytes]] = {"plaza": plaza.plan, "warehouse": warehouse.plan}
ANALYST, ADMIN = "analyst", "admin"
TOKEN = "simulator"  # noqa: S105  no secret - the name under which it is kept
TOKEN_TITLE = "Demo simulators"  # noqa: S105  no secret


@transaction.atomic
def seed_users(password: str | None, admin_password: str | None) -> User:
    """The demo's analyst, its administrator and their team; the analyst. The passwords
    are for users that are new.

    Raises ValueError when a user is new and there is no password for them.
    """
    analyst = _user(ANALYST, password, first_name="Demo", last_name="Analyst")
    admin = _user(ADMIN, admin_password, is_staff=True, is_superuser=True)
    if password and admin_password and admin.check_password(password):
        # Demos from before the two had separate passwords.
        _give(admin, admin_password)
    team, _ = Team.objects.get_or_create(name=TEAM)
    # An operator, so that new users may try everything: jobs and channels too.
    Membership.objects.get_or_create(user=analyst, team=team, defaults={"role": Role.OPERATOR})
    Membership.objects.get_or_create(user=admin, team=team, defaults={"role": Role.ADMIN})
    return analyst


def _user(name: str, password: str | None, **fields: Any) -> User:
    user, new = User.objects.get_or_create(username=name, defaults=fields)
    if new and not password:
        raise ValueError("Set VEDETTE_DEMO_PASSWORD and VEDETTE_DEMO_ADMIN_PASSWORD: the passwords of the demo's new users.")
    if new and password:
        _give(user, password)
    return user


def _give(user: User, password: str) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])


def seed_feed(name: str, analyst: User) -> Feed:
    """One demo feed with its regions and queries; existing ones are left unchanged, edited or
    not."""
    scenario = read_scenario(name)
    team = Team.objects.get(name=TEAM)
    with transaction.atomic():
        feed = Feed.objects.filter(name=name).first() or _new_feed(scenario, analyst, team)
        if name in PLANS and not feed.plan_image:
            feed_set_plan(feed=feed, data=PLANS[name]())
        _seed_regions(feed, analyst, team, scenario.places)
        _seed_queries(feed, analyst, team, scenario.queries)
    return feed


def _new_feed(scenario: Scenario, analyst: User, team: Team) -> Feed:
    feed = feed_create(owner=analyst, team=team, **scenario.feed)
    if isinstance(scenario.world, City):
        overlay_keep(feed=feed, name="Streets", document=scenario.world.streets())
    return feed


def _seed_regions(feed: Feed, analyst: User, team: Team, places: list[Place]) -> None:
    known = set(Region.objects.filter(feed=feed).values_list("name", flat=True))
    for place in places:
        if place.name not in known:
            region_create(owner=analyst, feed=feed, name=place.name, geometry=place.geometry, tags=place.tags, team=team)


def _seed_queries(feed: Feed, analyst: User, team: Team, queries: list[dict[str, Any]]) -> None:
    known = query_names(feed=feed)
    for query in queries:
        # Removed ones stay removed: their name is known.
        if query["name"] not in known:
            query_register(owner=analyst, feed=feed, team=team, **{key: value for key, value in query.items() if key != "truth"})


def seed_token(analyst: User) -> Path | None:
    """Stores a token for the simulators in `var`, unless the stored one is still valid. Returns its
    path if it was written."""
    kept = token_kept(TOKEN)
    if kept is not None and token_authenticate(kept, Scope.INGEST) is not None:
        return None
    ApiToken.objects.filter(user=analyst, name=TOKEN_TITLE).delete()
    return token_keep(TOKEN, token_create(user=analyst, name=TOKEN_TITLE, scopes=[Scope.INGEST]).text)


def seed(*, password: str | None, admin_password: str | None, feeds: bool = True) -> list[Feed]:
    """All of it; without `feeds` only the users and their team. Raises ValueError without a
    password for new users."""
    analyst = seed_users(password, admin_password)
    if not feeds:
        return []
    seed_token(analyst)
    return [seed_feed(name, analyst) for name in WORLDS]
