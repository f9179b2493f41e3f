"""The channel layer: Redis, or memory within one process when there is none (tests, a single daphne)."""

from webapp.config.settings.environment import number
from webapp.config.settings.storage import REDIS_URL

CHANNEL_LAYERS = {
    "default": (
        {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            # Lost messages are found again by their sequence number, so the bounds may be small; a group outlives its socket by an hour at most.
            # Each socket may need a connection at the same moment; redis-py's own bound is a hundred, and beyond it sockets end with an error.
            "CONFIG": {
                # A socket waits five seconds at a time for its next message (`brpop_timeout`); redis-py gives up after five, too, if nothing is said.
                "hosts": [{"address": REDIS_URL, "max_connections": 10_000, "socket_timeout": 20}],
                "capacity": 500,
                "expiry": 20,
                "group_expiry": 3600,
                "prefix": "vedette",
            },
        }
        if REDIS_URL
        else {"BACKEND": "channels.layers.InMemoryChannelLayer", "CONFIG": {"capacity": 1000}}
    )
}

# Each change of an answer is kept so long for pages and programs that follow them: who was away for longer begins anew.
VEDETTE_CHANGES_HOURS = number("VEDETTE_CHANGES_HOURS", 1)
