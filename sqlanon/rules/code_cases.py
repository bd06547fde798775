"""The tree of rules as one CASE over coded rows, where that is quicker than a join a level (see `cases`)."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.encoding.fields import word_column
from sqlanon.engines.base import Engine
from sqlanon.partition.axes import mask_column
from sqlanon.rules import cases
from sqlanon.rules.tables import RuleTables
from sqlanon.sql import RedactedValue, Relation, expression


@dataclass(frozen=True)
class PlaceCase:
    """The place where a coded row `r` ends; its thresholds are shifted by a number, `secret.shift` in the statement.

    A code tells the value where the least one is 0 or 1. So that a server's log of statements holds none, thresholds
    are shifted by a number that is drawn for this statement and withheld.
    """

    place: Markup
    shift: RedactedValue


def place_of_row(engine: Engine, routes: Relation, words: int, rules: RuleTables) -> PlaceCase | None:
    """The rules of a tree without hierarchies as one CASE; None where rows are to go by joins.

    routes: `(place, first, threshold, mask_0, …)`, as `route` makes them.
    """
    if not engine.traits.prefers_case or rules.depth > cases.DEEPEST:
        return None
    (nodes,) = engine.query_one("count_rows", table=routes)
    if nodes > 2 * cases.MOST_RULES:
        return None
    found = engine.query("rules/read_routes", routes=routes, masks=[mask_column(w) for w in range(words)])
    drawn = secrets.randbelow(2**61)
    splits = {int(place): (int(first), threshold, masks) for place, first, threshold, *masks in found}

    def case(place: int) -> Markup:
        first, threshold, masks = splits[place]
        if first == place:
            return Markup(str(place))
        (word,) = (w for w, mask in enumerate(masks) if mask)
        return expression(
            "CASE WHEN (r.{word} & {mask}) + secret.shift >= {threshold} THEN {above} ELSE {below} END",
            word=word_column(word),
            mask=masks[word],
            threshold=threshold + drawn,
            above=case(first + 1),
            below=case(first),
        )

    return PlaceCase(case(0), RedactedValue(drawn))
