"""Sets of classes that some person has, and too few persons have: what km-anonymity forbids of a release.

Sets of two classes are those of a join of persons and classes with itself, and so on; as in Apriori (Agrawal, Srikant,
VLDB 1994), larger ones are counted only once all smaller ones of the remaining classes are those of persons enough.
"""

from __future__ import annotations

from sqlanon.engines.base import Engine
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


def list_short(
    engine: Engine, workspace: Workspace, memberships: Relation, size: int, persons: int
) -> tuple[Relation, int]:
    """List the smallest class of each set of so many classes that one person has, and fewer than `persons` do.

    memberships: a work table `(person, class)` of known persons and each of their classes once. Classes are numbered by
        their size: of two the one with the smaller number is the smaller one.

    Returns a work table `(class)`, and how many classes it lists.
    """
    short = workspace.table("short_sets")
    workspace.drop(short)
    with engine.grouping_by_hash():
        engine.run("encoding/create_short_sets", short=short, memberships=memberships, size=size, persons=persons)
    (classes,) = engine.query_one("encoding/count_short_sets", short=short)
    return short, int(classes)
