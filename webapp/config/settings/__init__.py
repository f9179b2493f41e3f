"""Settings of the web application, by concern; everything comes from the environment
(`docs/settings.md` lists the variables).

Importing them needs no database, no broker and no folder.
"""

from webapp.config.settings.api import *  # noqa: F403
from webapp.config.settings.base import *  # noqa: F403
from webapp.config.settings.identity import *  # noqa: F403
from webapp.config.settings.jobs import *  # noqa: F403
from webapp.config.settings.live import *  # noqa: F403
from webapp.config.settings.quotas import *  # noqa: F403
from webapp.config.settings.security import *  # noqa: F403
from webapp.config.settings.storage import *  # noqa: F403
from webapp.config.settings.tasks import *  # noqa: F403
