"""Sentences of the family `occupancy`."""

from __future__ import annotations

from engine.model.feed import Feed
from webapp.queries.sentences.words import Specification, conditions, duration, ranges, region_name


def occupancy(specification: Specification, feed: Feed) -> str:
    """`Tells while at least 5 are in the anchorage for 10 minutes or longer.`"""
    op, n = specification["count"]
    many = f"at least {n}" if op == ">=" else "nothing" if n == 0 else f"at most {n}"
    verb = "is" if n == 1 or (op == "<=" and n == 0) else "are"
    which = conditions(specification.get("where"))
    who = f"{many} whose {which} {verb}" if which else f"{many} {verb}"
    where = f"in {region_name(specification['region'])}" if "region" in specification else f"at {ranges(specification.get('ranges', {}))}"
    lasting = f" for {duration(specification['lasting'], feed)} or longer" if specification.get("lasting") else ""
    stale = f" A report counts for {duration(specification['stale'], feed)}." if specification.get("stale") is not None else ""
    return f"Tells while {who} {where}{lasting}.{stale}"
