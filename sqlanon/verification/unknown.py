"""Numbers of classes that hold NULL, where the policy says that these show nothing but NULL."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from sqlanon.engines.base import Engine
from sqlanon.sql import Identifier, Relation, expression

KNOWN = "known"  # the column of a witness with raw values that their class shows


def count_shown_nulls(engine: Engine, witness: Relation | Markup, raw: str, cells: Sequence[str]) -> int:
    """The rows whose value is NULL, and that show something else."""
    names = [Identifier(cell) for cell in cells]
    (count,) = engine.query_one("verify/count_shown_nulls", witness=witness, raw=Identifier(raw), cells=names)
    return int(count)


def with_known(witness: Relation | Markup, raw: str, cells: Sequence[str], *, tight: bool) -> Markup:
    """The witness with a column of raw values that is NULL in classes that hold NULL.

    tight: whether the witness has all rows of each class, and cells are of these alone; else a class may hold a NULL
    that the witness lacks, or its box may, and one that shows nothing but NULL claims nothing.
    """
    claims = Markup("")
    if not tight:
        columns = Markup(", ").join(expression("v.{cell}", cell=Identifier(cell)) for cell in cells)
        claims = expression(" AND coalesce({columns}) IS NOT NULL", columns=columns)
    return expression(
        "(SELECT v.*, CASE WHEN count(*) OVER class = count(v.{raw}) OVER class{claims} THEN v.{raw} END AS {known}"
        " FROM {witness} AS v WINDOW class AS (PARTITION BY v.leaf))",
        raw=Identifier(raw),
        known=Identifier(KNOWN),
        claims=claims,
        witness=witness,
    )
