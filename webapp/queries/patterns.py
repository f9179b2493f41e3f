"""The pattern of a composite event for its editor: as a tree, as text, with its triggers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from webapp.queries.constraint_graph import placed
from webapp.queries.trial_answers import Leaf, LeafKind, PatternAnswer

if TYPE_CHECKING:
    from engine.complex_events.pattern import DescribedNode, Pattern
    from engine.model.feed import Feed

OPERANDS = ("and", "or", "sequence", "interval", "absence", "before", "around")


def pattern_answer(specification: Mapping[str, Any], feed: Feed, regions: Mapping[str, Any]) -> PatternAnswer:
    """Nothing is raised for a specification with faults.

    `tree` writes times as the text does. `leaves` are the pattern's primitives from left to right,
    also while other parts of the query are wrong.
    """
    from engine.complex_events.pattern_text import PatternRefused, translate
    from engine.complex_events.specification import check
    from engine.context import Context
    from webapp.queries.sentences.composite import pattern_words

    context = Context(feed, regions)
    check(specification, context)
    answer: PatternAnswer = {"faults": [placed(fault) for fault in context.faults], "tree": None, "words": None, "leaves": []}
    written = specification.get("pattern")
    if isinstance(written, str):
        try:
            written = translate(written).tree
        except PatternRefused:
            return answer
    pattern = _alone(written, feed)
    if pattern is not None:
        answer |= {"tree": written, "words": pattern_words(written, feed), "leaves": _leaves(pattern)}
    return answer


def _alone(written: Any, feed: Feed) -> Pattern | None:
    """Only the pattern of a JSON tree, independent of the meaning of its primitives; null
    when there is a fault in it."""
    from engine.complex_events.specification import check
    from engine.context import Context

    names = dict.fromkeys(_names(written))
    specification = check({"family": "composite", "pattern": written, "primitives": {name: {} for name in names}, "within": 1}, Context(feed, {}))
    return None if specification is None else specification.pattern


def _names(written: Any) -> Iterator[str]:
    if isinstance(written, str):
        yield written
    elif isinstance(written, Mapping):
        parts = [part for key in OPERANDS if isinstance(written.get(key), list) for part in written[key]]
        for part in [*parts, written.get("without")]:
            yield from _names(part)


def _leaves(pattern: Pattern) -> list[Leaf]:
    """`trigger`: an event of it may complete the pattern; `needed`: every occurrence contains it;
    `negative`: it must not occur."""
    from engine.complex_events.pattern import describe
    from engine.complex_events.requirements import required_primitives

    needed = required_primitives(pattern)

    def walk(node: DescribedNode) -> Iterator[Leaf]:
        if not node.parts:
            kind = cast(LeafKind, node.kind)  # A virtual node has parts.
            yield {"name": node.label, "kind": kind, "needed": kind != "negative" and node.label in needed}
        for part in node.parts:
            yield from walk(part)

    return list(walk(describe(pattern)))
