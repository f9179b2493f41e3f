"""The demo's users have different passwords and keep the ones they chose; and
the objects made for them."""

import pytest
from django.core.management import CommandError, call_command

from webapp.accounts.models import User

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEDETTE_DEMO_PASSWORD", "of the analyst 1")
    monkeypatch.setenv("VEDETTE_DEMO_ADMIN_PASSWORD", "of the admin 2")
    call_command("demo_seed", "--no-feeds")


def user(name: str) -> User:
    return User.objects.get(username=name)


def test_admin_and_analyst_have_different_passwords(seeded: None) -> None:
    assert user("analyst").check_password("of the analyst 1") and not user("analyst").check_password("of the admin 2")
    assert user("admin").check_password("of the admin 2") and not user("admin").check_password("of the analyst 1")


def test_a_restart_keeps_changed_passwords(seeded: None) -> None:
    for name in ("analyst", "admin"):
        chosen = user(name)
        chosen.set_password(f"chosen by {name}")
        chosen.save()
    call_command("demo_seed", "--no-feeds")
    assert user("analyst").check_password("chosen by analyst") and user("admin").check_password("chosen by admin")


def test_an_admin_with_the_analysts_password_gets_a_new_one(seeded: None) -> None:
    admin = user("admin")
    admin.set_password("of the analyst 1")
    admin.save()
    call_command("demo_seed", "--no-feeds")
    assert user("admin").check_password("of the admin 2")


def test_without_passwords_no_users_are_made(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("VEDETTE_DEMO_PASSWORD", "VEDETTE_DEMO_ADMIN_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(CommandError, match="VEDETTE_DEMO_ADMIN_PASSWORD"):
        call_command("demo_seed", "--no-feeds")


def test_a_query_of_the_demo_derives_from_others_that_were_made_before_it(seeded: None) -> None:
    from webapp.demo.seed import seed_feed

    for _ in range(2):
        feed = seed_feed("plaza", user("analyst"))
    rounds = feed.queries.get(name="From stand to stand")
    assert set(rounds.derives_from.values_list("name", flat=True)) == {
        f"{stand}: visitors" for stand in ("Stand A", "Stand B", "Stand C", "Stand D", "Cafe")
    }
