"""Documents that keep the order of their keys."""

from __future__ import annotations

import json
from typing import Any

from django.db import models


class DocumentField(models.JSONField):
    """A JSON object or array stored as PostgreSQL `json`: unlike `jsonb`
    it keeps the order of keys.

    The order carries meaning: the variables of a constraint query name its answers' entities in
    their order. Not searchable.
    """

    def db_type(self, connection: Any) -> str:
        return "json"

    def get_db_prep_value(self, value: Any, connection: Any, prepared: bool = False) -> Any:
        return None if value is None else json.dumps(value, allow_nan=False)

    def from_db_value(self, value: Any, expression: Any, connection: Any) -> Any:
        # psycopg2 parses `json` by itself.
        return json.loads(value) if isinstance(value, str) else value
