"""Tables of a schema that belong together: their keys, what they refer to, and which of them has a row a person.

References are the foreign keys that the database knows. Where it knows none of a column, the column refers to the table
whose single key has the same name, which a draft says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlanon.engines.base import Engine, RelationType
from sqlanon.errors import PolicyError
from sqlanon.inquiries.profile.column_facts import Profile
from sqlanon.inquiries.profile.profiling import profile
from sqlanon.plan.column_names import names_a_person
from sqlanon.plan.trust import reading
from sqlanon.sql import Identifier, Relation, Text
from sqlanon.support.suggest import any_of, did_you_mean

READ_KINDS = (RelationType.TABLE, RelationType.PARTITIONED_TABLE)
_FOREIGN = "FOREIGN KEY"


@dataclass(frozen=True)
class Reference:
    """A column that refers to a key of another table; orphans: how many rows refer to no row there.

    is_named: whether it is known by its name alone, as the database has no foreign key of it.
    """

    column: str
    table: str
    key: str
    orphans: int = 0
    is_named: bool = False


@dataclass(frozen=True)
class SchemaTable:
    """A table of a schema, as it was measured.

    key: its primary or unique key of one column; None where it has none. references: to other tables, no two by one
    column.
    """

    name: str
    facts: Profile
    key: str | None = None
    references: tuple[Reference, ...] = ()


@dataclass(frozen=True)
class SchemaFacts:
    """The tables of a schema, those that are referred to first; people: the one that has a row a person."""

    schema: str
    tables: tuple[SchemaTable, ...]
    people: SchemaTable

    def distance(self, name: str) -> int | None:
        """Count the references from a table to that of the people; None where none lead there."""
        if name == self.people.name:
            return 0
        table = next(one for one in self.tables if one.name == name)
        below = [self.distance(one.table) for one in table.references]
        known = [steps for steps in below if steps is not None]
        return 1 + min(known) if known else None


def measure_schema(
    engine: Engine, schema: str, people: str | None = None, *, trusts_owner: bool = False
) -> SchemaFacts:
    """Profile all tables of a schema, and find how they refer to each other and to people.

    people: the table that has a row a person, where it is known. trusts_owner: as in `profile_table`.

    Raises PolicyError where there is no such schema, or nothing tells the table of people.
    """
    relations = _tables_of(engine, schema)
    keys = _Keys.read(engine, schema, relations)
    ordered = list(_ordered(relations, keys.references))
    chosen = _people(ordered, keys, people)
    tables = []
    for name in ordered:
        with reading(engine, relations[name], trusts_owner=trusts_owner, remedy="--trust-owner"):
            facts = profile(engine, relations[name])
            references = tuple(_counted(engine, relations, name, one) for one in keys.references.get(name, ()))
        tables.append(SchemaTable(name, facts, keys.keys.get(name), references))
    return SchemaFacts(schema, tuple(tables), next(one for one in tables if one.name == chosen))


def _tables_of(engine: Engine, schema: str) -> dict[str, Relation]:
    known = [one for one in engine.relations() if one.schema is not None]
    home = engine.home().catalog
    there = {
        one.name: one
        for one in known
        if one.schema == schema and one.catalog == home and engine.relation_type(one) in READ_KINDS
    }
    if not there:
        schemas = sorted({str(one.schema) for one in known if one.catalog == home})
        others = f"; {did_you_mean(schema, schemas)}" if schemas else ", and no other schema has one"
        raise PolicyError(f"--schema: '{schema}' has no table that the session may read{others}")
    return there


@dataclass(frozen=True)
class _Keys:
    """The keys of one column of tables, and the references between these."""

    keys: Mapping[str, str]
    references: Mapping[str, Sequence[Reference]]

    @classmethod
    def read(cls, engine: Engine, schema: str, relations: Mapping[str, Relation]) -> _Keys:
        keys: dict[str, str] = {}
        references: dict[str, dict[str, Reference]] = {name: {} for name in relations}
        for name, kind, column, columns, referred, key in engine.query(
            "inquiries/profile/list_keys", schema=Text(schema)
        ):
            if name not in relations or columns != 1:
                continue
            if kind != _FOREIGN:
                keys.setdefault(name, column)
            elif referred in relations and referred != name:
                references[name].setdefault(column, Reference(column, referred, key))
        for name, relation in relations.items():
            for column in engine.columns(relation):
                named = [other for other, key in keys.items() if key == column.name and other != name]
                if len(named) == 1 and column.name not in references[name] and keys.get(name) != column.name:
                    references[name][column.name] = Reference(column.name, named[0], column.name, is_named=True)
        return cls(keys, {name: tuple(own.values()) for name, own in references.items()})


def _ordered(relations: Mapping[str, Relation], references: Mapping[str, Sequence[Reference]]) -> Iterator[str]:
    """List the tables, each after those that it refers to; a circle is broken where it is met."""
    done: dict[str, None] = {}

    def visit(name: str, trail: tuple[str, ...]) -> None:
        for one in references.get(name, ()):
            if one.table not in done and one.table not in trail:
                visit(one.table, (*trail, one.table))
        done[name] = None

    for name in sorted(relations):
        if name not in done:
            visit(name, (name,))
    return iter(done)


def _people(names: Sequence[str], keys: _Keys, wanted: str | None) -> str:
    """Choose the table of people: the one that is named, or whose key is named like that of a person."""
    if wanted is not None:
        if wanted not in names:
            raise PolicyError(f"--people: '{wanted}' is not a table of the schema; {did_you_mean(wanted, names)}")
        if wanted not in keys.keys:
            raise PolicyError(
                f"--people: '{wanted}' has no primary or unique key of one column, by which others could refer to it."
            )
        return wanted
    named = [name for name in names if names_a_person(keys.keys.get(name, ""))]
    referred = {name: sum(one.table == name for own in keys.references.values() for one in own) for name in names}
    named.sort(key=lambda name: -referred[name])
    if not named:
        candidates = [name for name in names if name in keys.keys]
        choices = f": {any_of(candidates)}" if candidates else ""
        raise PolicyError(
            "No table has a key that is named like that of a person; say by --people which table has one row a"
            f" person{choices}."
        )
    return named[0]


def _counted(engine: Engine, relations: Mapping[str, Relation], name: str, one: Reference) -> Reference:
    """Count the rows that refer to no row."""
    (orphans,) = engine.query_one(
        "inquiries/profile/count_orphans",
        table=relations[name],
        column=Identifier(one.column),
        referred=relations[one.table],
        key=Identifier(one.key),
    )
    return Reference(one.column, one.table, one.key, int(orphans), one.is_named)
