"""Addresses of sockets."""

from django.urls import path

from webapp.live.consumers import LiveConsumer

websocket_urlpatterns = [path("ws/live/", LiveConsumer.as_asgi())]
