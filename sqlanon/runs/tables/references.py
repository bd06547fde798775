"""Rows of a table in the classes of the rows that they refer to, by the keys that the release shows.

Whoever reads the released tables joins them by these keys, and sees of a row what the rows that it refers to show. So
the rows of a table are grouped by the classes of all rows about people that they refer to, and classed within these
groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import AttributeSection, Role, Show
from sqlanon.policy.tables import TablePart
from sqlanon.results.measures import Check
from sqlanon.sql import Identifier, Relation, free_name
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class KeyClasses:
    """The keys of a staged table about people: a work table `(key, person, class)`.

    name: of the table, for people. classes: how many there are.
    """

    name: str
    table: Relation
    classes: int


def create_key_classes(
    engine: Engine, workspace: Workspace, part: TablePart, staged: Relation, shown: Sequence[str]
) -> KeyClasses:
    """Number the classes of a table by what they show, and write down the class of each key.

    staged: the rows as readers see them. shown: the columns whose values make the classes.
    Raises PolicyError where a key is in several rows, so that nobody knows which of these others refer to.
    """
    assert part.key is not None
    table = workspace.table("key_classes")
    engine.run(
        "runs/tables/create_key_classes",
        classes=table,
        staged=staged,
        key=Identifier(part.key),
        person=Identifier(part.person or part.key),
        shown=[Identifier(name) for name in shown],
    )
    engine.analyze(table)
    rows, keys, classes = engine.query_one("runs/tables/count_keys", classes=table)
    if rows != keys:
        raise PolicyError(
            f"tables.{part.name}.key: '{part.key}' repeats, so that rows of other tables may refer to several of its"
            " rows; name a column that doesn't."
        )
    return KeyClasses(part.name, table, int(classes))


def group_name(part: TablePart, columns: Sequence[str]) -> str:
    """Name the column for the number of the group, which no column of the table has as its name."""
    others = " and ".join(dict.fromkeys(other for other, _ in (part.references or {}).values()))
    return free_name(f"class of {others}", columns).name


def with_group(plan: Plan, name: str) -> Plan:
    """Plan for one more quasi-identifier, the number of the group."""
    column = Column(name, "BIGINT", Kind.INTEGER, False)
    attribute = Attribute(column, Role.QUASI_IDENTIFIER, None, Show.LABEL, is_given=True)
    section = AttributeSection(role=Role.QUASI_IDENTIFIER)
    policy = plan.policy.model_copy(update={"attributes": {**plan.policy.attributes, name: section}})
    return replace(plan, policy=policy, attributes=(*plan.attributes, attribute))


def place_rows(
    engine: Engine,
    source: Relation,
    columns: Sequence[str],
    placed: Relation,
    part: TablePart,
    classes: Mapping[str, KeyClasses],
    name: str,
) -> int:
    """Create a copy of the rows whose references are all released, each with the number of its group.

    source: rows with the keys that the release shows. classes: of the tables that they refer to. name: of the new
    column.

    Returns how many rows are not in the copy: these refer to rows that the release does not have, or to those of
    several persons.
    """
    engine.run(
        "runs/tables/place_rows",
        placed=placed,
        source=source,
        columns=[Identifier(column) for column in columns],
        group=Identifier(name),
        person=Identifier(str(part.person)),
        references=_references(part, classes),
    )
    engine.analyze(placed)
    before, after = (engine.query_one("count_rows", table=one)[0] for one in (source, placed))
    return int(before) - int(after)


def _references(part: TablePart, classes: Mapping[str, KeyClasses]) -> list[dict[str, object]]:
    return [
        {
            "alias": Identifier(f"referred_{place}"),
            "classes": classes[other].table,
            "column": Identifier(column),
            "is_person": column == part.person,
        }
        for place, (column, (other, _)) in enumerate((part.references or {}).items())
    ]


def check_groups(
    engine: Engine,
    part: TablePart,
    staged: Relation,
    classes: Mapping[str, KeyClasses],
    name: str,
) -> Check:
    """Check that staged rows of one number refer to rows of the same classes, and that all of these are staged.

    Numbers are compared with what the staged tables show by now, and not with what rows were placed by.
    """
    (rows,) = engine.query_one("count_rows", table=staged)
    (astray,) = engine.query_one(
        "runs/tables/count_astray",
        staged=staged,
        group=Identifier(name),
        person=Identifier(str(part.person)),
        references=_references(part, classes),
    )
    return Check(int(astray), int(rows))
