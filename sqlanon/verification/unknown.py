"""Numbers of classes that hold NULL, where the policy says that these show nothing but NULL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Identifier, Relation, macro

KNOWN = "known"  # the column of a witness with raw values that their class shows


def count_shown_nulls(engine: Engine, witness: Relation | Expression, raw: str, cells: Sequence[str]) -> int:
    """The rows whose value is NULL, and that show something else."""
    names = [Identifier(cell) for cell in cells]
    (count,) = engine.query_one("verification/count_shown_nulls", witness=witness, raw=Identifier(raw), cells=names)
    return int(count)


def with_known(witness: Relation | Expression, raw: str, cells: Sequence[str], *, exact_ranges: bool) -> Expression:
    """The witness with a column of raw values that is NULL in classes that hold NULL.

    exact_ranges: whether the witness has all rows of each class, and cells are of these alone; else a class may hold a
    NULL that the witness lacks, or its box may, and one that shows nothing but NULL claims nothing.
    """
    claims = [] if exact_ranges else [Identifier(cell) for cell in cells]
    return macro("verification.with_known", witness, Identifier(raw), Identifier(KNOWN), claims)
