"""The web application's settings without limits on requests per minute, as thousands are sent
here."""

from webapp.config.settings import *
from webapp.config.settings import REST_FRAMEWORK

REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"] = dict.fromkeys(REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"], "100000000/min")
INGEST_RATE = "100000000/min"
