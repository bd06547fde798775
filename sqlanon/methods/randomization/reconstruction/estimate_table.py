"""An estimated distribution as a table of the database that holds the release, for its owner alone."""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.engines.publishing import publisher_of
from sqlanon.errors import PolicyError
from sqlanon.methods.randomization.reconstruction.result import Reconstruction
from sqlanon.plan.new_tables import find_new_table
from sqlanon.sql import Identifier, Relation

_OPTION = "--table"


def place_of_estimate(engine: Engine, table: str, by: str | None) -> Relation:
    """Find the place of a table of an estimate, before any work.

    Raises PolicyError where the table exists or can't be made, or groups are of a column named as one of the table's.
    """
    if by is not None and by.lower() in Reconstruction.COLUMNS:
        raise PolicyError(f"'{by}' has the name of a column that {_OPTION} writes: rename it in the source, by a view.")
    return find_new_table(engine, table, _OPTION)


def write_estimate(engine: Engine, table: Relation, result: Reconstruction) -> None:
    """Write an estimate into a new table, whole or not at all."""
    by = None if result.by is None else Identifier(result.by)
    with engine.transaction():
        engine.run(
            "methods/randomization/reconstruction/create_estimate", table=table, by=by, is_numeric=result.is_numeric
        )
        publisher_of(engine).guard(table)
        engine.load(table, result.headings, result.rows())
