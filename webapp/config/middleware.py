"""Headers on every response, and a log-in before every page."""

from collections.abc import Callable

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from whitenoise.middleware import WhiteNoiseMiddleware

from webapp.config.errors import bad_request

Next = Callable[[HttpRequest], HttpResponseBase]

OPEN_PATHS = ("/login/", "/healthz", "/static/", "/shared/", "/acknowledge/")
"""Paths that need no log-in; links to a live view answer 404 themselves."""
API_PATHS = ("/api/",)
"""Answers 401 itself."""


class SecurityHeaders:
    """Adds the content security policy and related headers to all
    responses: pages, files, errors."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response
        policy = {name: [source for source in sources if source] for name, sources in settings.CONTENT_SECURITY_POLICY.items()}
        self.policy = "; ".join(f"{name} {' '.join(sources)}" for name, sources in policy.items())

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", self.policy)
        response.headers.setdefault("Permissions-Policy", settings.PERMISSIONS_POLICY)
        response.headers.setdefault("X-Content-Type-Options", "nosniff")
        response.headers.setdefault("Referrer-Policy", settings.SECURE_REFERRER_POLICY)
        response.headers.setdefault("Cross-Origin-Opener-Policy", settings.SECURE_CROSS_ORIGIN_OPENER_POLICY)
        response.headers.setdefault("X-Frame-Options", settings.X_FRAME_OPTIONS)
        return response


class NoNul:
    """Refuses addresses with a NUL: no name contains one, and PostgreSQL accepts none in a text."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", "") or "\0" in request.META.get("QUERY_STRING", ""):
            return bad_request(request, ValueError("NUL"))
        return self.get_response(request)


class StaticFiles(WhiteNoiseMiddleware):  # type: ignore[misc]
    """Serves static files. Those of finders are looked up at their first request, so a front end
    that is rebuilt meanwhile is found too."""

    def add_files_from_finders(self) -> None:
        """Nothing is scanned at the start: hundreds of files take longer than a request, and every
        client of a test starts again."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path_info
        if self.use_finders and path.startswith(self.static_prefix) and path not in self.files:
            static = self.find_file(path)
            if static is not None:
                self.files[path] = static
        response: HttpResponseBase = super().__call__(request)
        return response


class LoginRequired:
    """Sends users who are not logged in to the log-in page, from every page that is not explicitly
    open."""

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.user.is_authenticated or request.path.startswith(OPEN_PATHS + API_PATHS):
            response = self.get_response(request)
            # Personal responses are cached nowhere, neither by proxies nor by the browser: after
            # logging out, "back" shows nothing.
            response.headers.setdefault("Cache-Control", "no-store")
            return response
        if request.headers.get("Accept", "").startswith("application/json"):
            return HttpResponse(status=401)
        return redirect_to_login(request.get_full_path())
