"""The page behind an invitation's link: joins the team, with an existing account or a new one."""

from __future__ import annotations

from typing import Any

from allauth.account.utils import perform_login
from django import forms
from django.contrib.auth.password_validation import validate_password
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from webapp.accounts.models import Invitation, User
from webapp.accounts.teams import invitation_accept, invitation_find, invitation_get, invited_user_create
from webapp.config.opened_links import LinkEnded, is_opened, note_opened


class NewAccountForm(forms.ModelForm[User]):
    """Name and password of a new user."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        max_length=200,
        strip=False,
        help_text=gettext_lazy("At least 10 characters."),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    class Meta:
        model = User
        fields = ("username",)
        labels = {"username": gettext_lazy("User name")}
        help_texts = {"username": ""}
        widgets = {"username": forms.TextInput(attrs={"autocomplete": "username"})}

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        # The log-in compares names case-insensitively.
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(gettext("This name is already taken."))
        return name

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if "password" in cleaned:
            try:
                validate_password(cleaned["password"], User(username=cleaned.get("username", "")))
            except forms.ValidationError as error:
                self.add_error("password", error)
        return cleaned


INVITATION = "invitation"
"""The kind of these links, in sessions."""


def open_invitation(request: HttpRequest, secret: str) -> str:
    """Opens an invitation in this session; returns the address of its page, which also reports that
    an invitation no longer exists."""
    offer = invitation_find(secret)
    if offer is None:
        raise LinkEnded
    note_opened(request, INVITATION, offer.pk, offer.expires_at)
    return reverse("invitation-answer", args=[offer.pk])


@never_cache
@sensitive_post_parameters("password")
def invitation(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Shows who invites to which team; a POST joins it."""
    offer = invitation_get(pk) if is_opened(request.session, INVITATION, pk) else None
    if offer is None:
        return render(request, "account/invitation_gone.html", status=404)
    if isinstance(request.user, User):
        return _join(request, offer, request.user)
    form = NewAccountForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        user = invited_user_create(invitation=offer, username=form.cleaned_data["username"], password=form.cleaned_data["password"])
        answer: HttpResponseBase = perform_login(request, user, redirect_url="/")
        return answer
    return _shown(request, offer, form)


def _join(request: HttpRequest, offer: Invitation, user: User) -> HttpResponse:
    if request.method != "POST":
        return _shown(request, offer, None)
    invitation_accept(invitation=offer, user=user)
    return redirect("teams")


def _shown(request: HttpRequest, offer: Invitation, form: NewAccountForm | None) -> HttpResponse:
    return render(request, "account/invitation.html", {"invitation": offer, "form": form})
