"""All addresses of the site."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("admin/", admin.site.urls),
]
handler400 = "webapp.config.errors.bad_request"
handler403 = "webapp.config.errors.permission_denied"
handler404 = "webapp.config.errors.not_found"
handler500 = "webapp.config.errors.server_error"
