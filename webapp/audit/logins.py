"""Log-ins, log-outs and failed log-ins, by any method: all of them send Django's signals."""

from __future__ import annotations

from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.mfa.signals import authentication_failed
from django.contrib.auth import get_user_model
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest

from webapp.audit.limits import RefusalLimit
from webapp.audit.models import Outcome
from webapp.audit.origin import of_request, origin
from webapp.audit.services import described, entry_write_or_log, record

_locked_out = RefusalLimit()


def connect() -> None:
    """Listens from now on."""
    user_logged_in.connect(_logged_in, dispatch_uid="audit")
    user_logged_out.connect(_logged_out, dispatch_uid="audit")
    user_login_failed.connect(_failed, dispatch_uid="audit")
    authentication_failed.connect(_second_factor_failed, dispatch_uid="audit")


def _logged_in(user: Any, request: HttpRequest | None = None, **_: Any) -> None:
    """With the methods by which the person was authenticated: password,
    passkey, provider, second factor."""
    proofs = get_authentication_records(request, user) if request is not None else []
    record("session.open", user, actor=user, by=[proof["method"] for proof in proofs])


def _logged_out(user: Any, **_: Any) -> None:
    if user is not None:
        record("session.close", user, actor=user)


def _failed(credentials: dict[str, Any], request: HttpRequest | None = None, **_: Any) -> None:
    name = str(credentials.get("username", ""))
    who = of_request(request) if request is not None else origin()
    _write(who, name, Outcome.FAILED)


def log_in_locked_out(request: HttpRequest, name: str) -> None:
    """A log-in that was not tried because too many have failed."""
    who = of_request(request)
    if _locked_out.passed(name, who["address"]) is not None:
        _write(who, name, Outcome.REFUSED)


def _write(who: dict[str, Any], name: str, outcome: Outcome) -> None:
    """The name is stored only if an account has it: users type passwords into the wrong field."""
    account = None if "\0" in name else get_user_model()._default_manager.filter(username=name).first()
    what = described(account) if account is not None else {"object_type": "user", "detail": {"account": "unknown"}}
    entry_write_or_log(action="session.open", outcome=outcome, **who, **what)


def _second_factor_failed(user: Any, authenticator: Any, request: HttpRequest | None = None, **_: Any) -> None:
    """The password was right, or the user is logged in already, so the name is known."""
    who = of_request(request) if request is not None else origin()
    entry_write_or_log(action="session.open", outcome=Outcome.FAILED, detail={"second_factor": authenticator.type}, **who, **described(user))
