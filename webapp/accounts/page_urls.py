"""Addresses of the log-in, and of the pages about the user's own account.

allauth's own lists of addresses also contain pages that Vedette does not offer (signing up, several
e-mail addresses), so these are selected one by one. Pages below /login/ are open to everybody,
those below /account/ need a log-in.
"""

from allauth.account import views as account
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from allauth.socialaccount import views as providers
from allauth.socialaccount.providers.openid_connect import views as oidc
from allauth.usersessions import views as sessions
from django.contrib.auth.views import LogoutView
from django.urls import path, re_path
from django.views.generic import RedirectView, TemplateView

from webapp.accounts.invitations import invitation, open_invitation
from webapp.accounts.resets import open_reset
from webapp.accounts.views import account as account_page
from webapp.accounts.views import provider_log_in, teams
from webapp.config.opened_links import opening_page

urlpatterns = [
    path("login/", account.login, name="account_login"),
    path("logout/", LogoutView.as_view(), name="account_logout"),
    path("login/no-account/", TemplateView.as_view(template_name="account/signup_closed.html"), name="account_signup"),
    path("login/inactive/", account.account_inactive, name="account_inactive"),
    path("login/second-factor/", factors.authenticate, name="mfa_authenticate"),
    path("login/passkey/", passkeys.login_webauthn, name="mfa_login_webauthn"),
    path("login/password/", account.password_reset, name="account_reset_password"),
    path("login/password/sent/", account.password_reset_done, name="account_reset_password_done"),
    path("login/password/key/", opening_page(open_reset), name="password-key"),
    re_path(
        r"^login/password/key/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>set-password)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path("login/password/done/", account.password_reset_from_key_done, name="account_reset_password_from_key_done"),
    path("login/with/<str:provider_id>/", provider_log_in, name="openid_connect_login"),
    path("login/with/<str:provider_id>/callback/", oidc.callback, name="openid_connect_callback"),
    path("login/with-cancelled/", providers.login_cancelled, name="socialaccount_login_cancelled"),
    path("login/with-error/", providers.login_error, name="socialaccount_login_error"),
    path("login/with-sign-up/", RedirectView.as_view(pattern_name="account_signup"), name="socialaccount_signup"),
    path("login/invitation/", opening_page(open_invitation), name="invitation"),
    path("login/invitation/<int:pk>/", invitation, name="invitation-answer"),
    path("teams/", teams, name="teams"),
    path("account/", account_page, name="account"),
    path("account/confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("account/confirm/second-factor/", factors.reauthenticate, name="mfa_reauthenticate"),
    path("account/confirm/passkey/", passkeys.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("account/password/", account.password_change, name="account_change_password"),
    path("account/password/set/", account.password_set, name="account_set_password"),
    path("account/security/", factors.index, name="mfa_index"),
    path("account/security/app/", totp.activate_totp, name="mfa_activate_totp"),
    path("account/security/app/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("account/security/codes/", codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("account/security/codes/new/", codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path("account/security/codes/file/", codes.download_recovery_codes, name="mfa_download_recovery_codes"),
    path("account/security/passkeys/", passkeys.list_webauthn, name="mfa_list_webauthn"),
    path("account/security/passkeys/new/", passkeys.add_webauthn, name="mfa_add_webauthn"),
    path("account/security/passkeys/<int:pk>/", passkeys.edit_webauthn, name="mfa_edit_webauthn"),
    path("account/security/passkeys/<int:pk>/remove/", passkeys.remove_webauthn, name="mfa_remove_webauthn"),
    path("account/providers/", providers.connections, name="socialaccount_connections"),
    path("account/sessions/", sessions.list_usersessions, name="usersessions_list"),
]
