"""Addresses of sockets."""

from django.urls import path

from webapp.live.consumers import LiveConsumer, SharedConsumer

websocket_urlpatterns = [path("ws/live/", LiveConsumer.as_asgi()), path("ws/shared/<int:pk>/", SharedConsumer.as_asgi())]
