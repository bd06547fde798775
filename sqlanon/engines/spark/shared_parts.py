"""Common table expressions that a statement names several times, so that Spark works each out once.

Spark writes an expression out at each of its uses: a statement about classes that names them thirty times would group
the table thirty times. It does not so with one that could come to something else each time; that is worked out once,
and all uses read what was shuffled. So a part that is named several times gets a condition that is always true, which
Spark can't know, as it draws a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.engines.spark.dialect import bare
from sqlanon.sql import DialectRenderer

_WITH = re.compile(r"\bWITH\s+(?!RECURSIVE\b)")
_PART = re.compile(r"\s*(\w+)\s+AS\s+\(")
_NEXT = re.compile(r"\s*,")
_BODY = "\x00"  # stands for a part in its frame


@dataclass(frozen=True)
class _Part:
    """A part of a statement by its name, and where its query begins and ends."""

    name: str
    start: int
    end: int


def with_parts_shared(text: str, renderer: DialectRenderer) -> str:
    """Write a statement of Spark's so that what it names several times is worked out once."""
    if "WITH" not in text:
        return text
    before, after = renderer.written(renderer.macro("worked_out_once", Markup(_BODY))).split(_BODY)
    places = [(place, added) for one in _shared(bare(text)) for place, added in ((one.start, before), (one.end, after))]
    for place, added in sorted(places, reverse=True):
        text = text[:place] + added + text[place:]
    return text


def _shared(words: str) -> Iterator[_Part]:
    """Find the parts that are named several times, in the statement or in one of its subqueries."""
    for start in _WITH.finditer(words):
        parts = list(_parts(words, start.end()))
        if parts:
            scope = words[start.end() : _end(words, parts[-1].end + 1)]
            yield from (part for part in parts if _uses(part.name, scope) > 1)


def _parts(words: str, place: int) -> Iterator[_Part]:
    """List the parts that stand behind a WITH."""
    while part := _PART.match(words, place):
        end = _end(words, part.end())
        yield _Part(part[1], part.end(), end)
        if not (following := _NEXT.match(words, end + 1)):
            return
        place = following.end()


def _end(words: str, place: int) -> int:
    """Find the parenthesis that closes what is open at a place, or the end of the statement."""
    depth = 0
    for bracket in re.finditer("[()]", words[place:]):
        depth += 1 if bracket[0] == "(" else -1
        if depth < 0:
            return place + bracket.start()
    return len(words)


def _uses(name: str, scope: str) -> int:
    return len(re.findall(rf"\b(?:FROM|JOIN)\s+{re.escape(name)}\b", scope))
