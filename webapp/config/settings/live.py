"""The channel layer: Redis, or memory within one process without Redis (tests, a single daphne)."""

from webapp.config.settings.environment import number
from webapp.config.settings.storage import REDIS_URL

CHANNEL_LAYERS = {
    "default": (
        {
            "BACKEND": "webapp.live.layer.SharedMessagesLayer",
            "CONFIG": {
                # A Redis that disappeared without closing the connection is noticed when it does
                # not answer.
                "hosts": [{"address": REDIS_URL, "socket_timeout": 20, "health_check_interval": 10}],
                # Lost messages are requested again by their sequence number, so the limit may be
                # small.
                "capacity": 500,
                "prefix": "vedette",
            },
        }
        if REDIS_URL
        else {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}
    )
}

# How long each change of an answer is kept for pages and programs that follow them: after a longer
# absence they start again.
VEDETTE_CHANGES_HOURS = number("VEDETTE_CHANGES_HOURS", 1, least=1, most=8760)
