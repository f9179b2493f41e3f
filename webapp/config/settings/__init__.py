"""Settings of the web application, by concern; everything comes from the environment
(`docs/settings.md` lists the variables).

Importing them needs no database, no broker and no folder.
"""

from webapp.config.settings.api import *
from webapp.config.settings.base import *
from webapp.config.settings.identity import *
from webapp.config.settings.jobs import *
from webapp.config.settings.live import *
from webapp.config.settings.quotas import *
from webapp.config.settings.security import *
from webapp.config.settings.storage import *
from webapp.config.settings.tasks import *
