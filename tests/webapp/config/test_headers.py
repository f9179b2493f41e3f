"""Security headers on every response, safe settings, pages that contain their data."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.contrib.staticfiles.finders import get_finder
from django.test import Client
from rest_framework.test import APIClient

from webapp.config.checks import connections_to_other_machines_use_tls

pytestmark = [pytest.mark.services, pytest.mark.django_db]

PAGES = ("/", "/queries/", "/queries/new", "/alerts/", "/regions/", "/feeds/", "/account/")


def policy_of(answer: Any) -> dict[str, list[str]]:
    return {part.split()[0]: part.split()[1:] for part in answer["Content-Security-Policy"].split("; ")}


def check_headers(answer: Any) -> None:
    policy = policy_of(answer)
    assert policy["default-src"] == policy["script-src"] == policy["style-src"] == ["'self'"]
    assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == ["'none'"]
    assert "unsafe" not in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["X-Frame-Options"] == "DENY"
    assert answer["Referrer-Policy"] == "same-origin"
    assert answer["Cross-Origin-Opener-Policy"] == "same-origin"


@pytest.mark.parametrize(
    "address", [*PAGES, "/login/", "/healthz", "/nothing/here", "/api/v1/feeds/", "/api/v1/nothing", "/api/schema/", "/static/none.js", "/admin/"]
)
def test_every_answer_carries_the_security_headers_logged_in_or_not(
    address: str, people: SimpleNamespace, client_of: Callable[..., APIClient]
) -> None:
    for user in (None, people.owner, people.root):
        check_headers(client_of(user).get(address))


def test_static_files_have_the_security_headers_too(db: None) -> None:
    answer = Client().get("/static/icons/favicon.svg")
    assert answer.status_code == 200
    check_headers(answer)


def test_a_front_end_that_is_built_anew_is_served_without_a_restart(tmp_path: Path, settings: Any) -> None:
    settings.STATICFILES_DIRS = [tmp_path]
    get_finder.cache_clear()
    (tmp_path / "before-12345678.js").write_text("1")
    client = Client()
    assert client.get("/static/before-12345678.js").status_code == 200
    assert client.get("/static/after-12345678.js").status_code == 404
    (tmp_path / "after-12345678.js").write_text("2")
    assert b"".join(client.get("/static/after-12345678.js")) == b"2"
    get_finder.cache_clear()


def test_server_errors_have_the_security_headers_and_reveal_nothing(
    people: SimpleNamespace, client_of: Callable[..., APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any, **kwargs: Any) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr("webapp.feeds.api.feed_list", fail)
    client = client_of(people.owner)
    client.raise_request_exception = False
    answer = client.get("/api/v1/feeds/")
    assert answer.status_code == 500
    check_headers(answer)
    assert "secret" not in answer.content.decode()
    assert answer.json()["faults"][0]["pointer"] == ""


def test_no_page_has_an_inline_script_or_style(people: SimpleNamespace, client_of: Callable[..., APIClient], query: Any) -> None:
    client = client_of(people.owner)
    for page in (*PAGES, f"/queries/{query.pk}"):
        text = client.get(page).content.decode()
        for opening in re.findall(r"<script[^>]*>", text):
            assert "src=" in opening or 'type="application/json"' in opening, (page, opening)
        assert not re.search(r"<style|\sstyle=|\son\w+=", text), page


def test_names_cannot_break_out_of_page_data(people: SimpleNamespace, client_of: Callable[..., APIClient], feed: Any) -> None:
    feed.title = "</script><script>alert(1)</script>"
    feed.save()
    text = client_of(people.owner).get("/").content.decode()
    assert "<script>alert" not in text
    found = re.search(r'<script id="page-data" type="application/json">(.*?)</script>', text, re.S)
    assert found is not None
    data = json.loads(found[1])
    assert data["feeds"][0]["title"] == feed.title
    assert data["me"]["name"] == "owner"


def test_queries_of_others_have_no_page(people: SimpleNamespace, client_of: Callable[..., APIClient], query: Any) -> None:
    assert client_of(people.viewer).get(f"/queries/{query.pk}").status_code == 200
    assert client_of(people.stranger).get(f"/queries/{query.pk}").status_code == 404


def run_manage(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    root = Path(settings.ROOT)
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments], cwd=root, env={**kept, **environment}, capture_output=True, text=True, check=False
    )


def test_production_settings_pass_the_deployment_check_without_a_warning() -> None:
    secret = "kq7v" * 16 + "0123456789"
    done = run_manage(
        "check",
        "--deploy",
        "--fail-level",
        "WARNING",
        SECRET_KEY=secret,
        ALLOWED_HOSTS="vedette.example.org",
        DATABASE_URL="postgres://u:p@h/d?sslmode=verify-full",
    )
    assert done.returncode == 0, done.stderr
    assert "no issues (0 silenced)" in done.stdout


@pytest.mark.parametrize(
    ("variable", "value", "named"),
    [
        ("REDIS_URL", "redis://cache.example.org/0", ["Redis"]),
        ("REDIS_URL", "rediss://cache.example.org/0?ssl_cert_reqs=none", ["Redis"]),
        ("REDIS_URL", "rediss://cache.example.org/0", []),
        ("REDIS_URL", "redis://127.0.0.1:6379/0", []),
        ("EMAIL_HOST", "mail.example.org", ["The mail server"]),
        ("EMAIL_HOST", "localhost", []),
    ],
)
def test_the_deployment_check_names_connections_without_tls(variable: str, value: str, named: list[str], settings: Any) -> None:
    settings.EMAIL_GIVEN, settings.EMAIL_USE_TLS, settings.EMAIL_USE_SSL = True, False, False
    settings.EMAIL_HOST, settings.REDIS_URL = "localhost", ""
    setattr(settings, variable, value)
    assert [one.msg.partition(" is on")[0] for one in connections_to_other_machines_use_tls()] == named


def test_settings_load_without_an_environment_but_nothing_is_served() -> None:
    assert run_manage("help").returncode == 0
    done = run_manage("check")
    assert done.returncode != 0 and "SECRET_KEY is not set" in done.stderr


def test_nothing_starts_with_failpoints_armed_outside_a_test() -> None:
    done = run_manage("check", SECRET_KEY="x", VEDETTE_FAILPOINTS="log.before_rename=kill")
    assert done.returncode != 0 and "VEDETTE_FAILPOINTS makes processes fail on purpose" in done.stderr


def test_every_migration_has_been_made() -> None:
    done = run_manage("makemigrations", "--check", "--dry-run", SECRET_KEY="x", DATABASE_URL=settings_url())
    assert done.returncode == 0, done.stdout


def settings_url() -> str:
    return os.environ["DATABASE_URL"]


def test_without_redis_people_still_log_in_and_work(people: SimpleNamespace, settings: Any) -> None:
    settings.CACHES = {"default": {"BACKEND": "webapp.config.cache.SharedCache", "LOCATION": "redis://127.0.0.1:1/0"}}
    client = Client()
    assert client.post("/login/", {"username": "owner", "password": "wrong"}).status_code == 200
    assert client.post("/login/", {"username": "owner", "password": "owner has a password"}).status_code == 302
    assert client.get("/api/v1/feeds/").status_code == 200
    assert client.post("/api/v1/queries/check", {}, content_type="application/json").status_code == 400


def test_commands_without_the_settings_of_a_running_system_say_how_to_get_them() -> None:
    """As in a second terminal while `make demo` runs."""
    for command in (("audit", "city"), ("token", "analyst")):
        done = run_manage(*command, PGHOST="/nowhere")
        assert done.returncode != 0 and ". var/environment" in done.stderr, done.stderr
        assert "Traceback" not in done.stderr


def test_a_database_that_is_down_is_named_in_one_line() -> None:
    done = run_manage("token", "analyst", SECRET_KEY="k" * 50, DATABASE_URL="postgres://u:p@127.0.0.1:1/d")
    assert done.returncode == 1 and done.stderr.startswith("connection to server at")
    assert "Is PostgreSQL running where DATABASE_URL says?" in done.stderr and len(done.stderr.splitlines()) == 1


def test_another_python_ends_with_the_name_of_one_to_use() -> None:
    """Without the packages of the environment, as the system's Python is."""
    done = subprocess.run([sys.executable, "-S", "manage.py", "check"], cwd=settings.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "Use .venv/bin/python manage.py; `make setup` makes it." in done.stderr
    assert "Traceback" not in done.stderr
