"""One value of an attribute for each entity: the map colours entities by it."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow.compute as pc
from django.db import connection
from django.db.models import Func, TextField, Value

from webapp.entities.models import Record
from webapp.feeds.models import Feed
from webapp.feeds.recent import POSITION_ENTITIES, POSITION_ROWS, last_of_each, newest_rows

MOST_NAMES = 100


def names(feed: Feed) -> list[str]:
    """The attributes that entities of the feed may have: columns of its rows first,
    then those of its registry."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT key FROM entities_record, json_object_keys(attributes) AS key WHERE feed_id = %s ORDER BY key LIMIT %s",
            [feed.pk, MOST_NAMES],
        )
        registered = [key for (key,) in cursor.fetchall()]
    return list(dict.fromkeys([*feed.columns, *registered]))[:MOST_NAMES]


def values(feed: Feed, name: str) -> dict[str, Any]:
    """Entity to value: the registry's, else the last one among the feed's newest rows; at
    most `POSITION_ENTITIES`."""
    reported = _reported(feed, name) if name in feed.columns else {}
    # Django's own lookup treats a name of digits as a position in a list.
    value = Func("attributes", Value(name), function="json_extract_path_text", output_field=TextField())
    registered = Record.objects.filter(feed=feed).annotate(value=value).filter(value__isnull=False)
    known = {**reported, **dict(registered.values_list("entity", "value")[:POSITION_ENTITIES])}
    return dict(itertools.islice(known.items(), POSITION_ENTITIES))


def _reported(feed: Feed, name: str) -> dict[str, Any]:
    rows = newest_rows(feed, POSITION_ROWS, ["entity", name])
    if not rows.num_rows or name not in rows.column_names:
        return {}
    rows = rows.filter(pc.and_(pc.is_valid(rows.column(name)), pc.is_valid(rows.column("entity"))))
    last = last_of_each(rows) if rows.num_rows else rows
    return dict(zip(last.column("entity").to_pylist(), last.column(name).to_pylist(), strict=True))
