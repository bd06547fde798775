"""The people whom a source is about: a base table and its key, whatever view or name the source is read by."""

from __future__ import annotations

from sqlanon.catalog import Catalog
from sqlanon.catalog.accounts import People
from sqlanon.engines.base import Engine, RelationType
from sqlanon.errors import PolicyError
from sqlanon.plan.beneath import table_beneath
from sqlanon.policy import Policy
from sqlanon.sql import Relation

_VIEWS = (RelationType.VIEW, RelationType.MATERIALIZED_VIEW)


def find_people(policy: Policy, engine: Engine, catalog: Catalog | None, source: Relation | None) -> People:
    """Find the people of a policy whose source is the resolved relation `source`, as their account knows them.

    The policy's own name for them holds; else the account that knows the table of the source, whatever it is called by
    now, or the name of that table. catalog: of the source's database; None where there is none yet. source: None where
    the policy alone can say who the people are, as of a file.

    Raises PolicyError where nobody can tell who the people are: a file, a view of several tables, or a table that two
    accounts know; and where the account of these people, named by the policy or not, knows another column.
    """
    table = None if source is None else base_table(engine, source)
    subject = None if source is None or table is None else _subject(policy, engine, source)
    identities = () if table is None or catalog is None else catalog.table_identities(table)
    known = {} if table is None or catalog is None else catalog.accounts_of(identities)
    if policy.people is not None:
        known = {name: column for name, column in known.items() if name == policy.people}
    elif table is None:
        what = "the source is a file" if source is None else f"{source} is a view of no table, or of several ones"
        raise PolicyError(
            f"people: {what}, and who its people are can't be known; give them a name, such as that of the table with"
            " one row a person."
        )
    if len(known) > 1:
        raise PolicyError(f"people: {table} is known to the accounts of {' and of '.join(sorted(known))}; name one.")
    for name, column in known.items():
        if None not in (column, subject) and column != subject:
            raise PolicyError(
                f"people: the account of {name} knows those of {table} by '{column}', and this policy by '{subject}'."
                f" Write subject: {column}, or give other people a name of their own."
            )
    return People(policy.people or next(iter(known), str(table)), identities, subject)


def known_people(policy: Policy, engine: Engine, catalog: Catalog, source: Relation) -> list[str]:
    """Name the accounts that know people of a policy's source, where a release or an answer is not entered."""
    if not (names := [one.name for one in catalog.accounts()]):
        return []
    if policy.people is not None:
        return [name for name in names if name == policy.people]
    return accounts_of_source(engine, catalog, source)


def accounts_of_source(engine: Engine, catalog: Catalog, source: Relation) -> list[str]:
    """Name the accounts that know people of a source, by the tables that have its rows; by its name if it is gone."""
    is_view = engine.resolve(source) is not None and engine.relation_type(source) in _VIEWS
    tables = engine.sharing(source) if is_view else [source]
    identities = [one for table in tables for one in catalog.table_identities(table)]
    return list(catalog.accounts_of(identities))


def base_table(engine: Engine, source: Relation) -> Relation | None:
    """Find the table that has a source's rows: the source, or the only one beneath a view; None where there is none.

    A partition, or an heir, has the rows of the table that it belongs to.
    """
    is_view = engine.relation_type(source) in _VIEWS
    roots = dict.fromkeys(_root(engine, table) for table in (engine.sharing(source) if is_view else [source]))
    return next(iter(roots)) if len(roots) == 1 else None


def _root(engine: Engine, table: Relation) -> Relation:
    parent = engine.parent_of(table)
    return table if parent is None else _root(engine, parent)


def _subject(policy: Policy, engine: Engine, source: Relation) -> str | None:
    """Name the column of the base table that tells persons apart; None where a view computes it."""
    if policy.person is None or engine.relation_type(source) not in _VIEWS:
        return policy.person
    try:
        return table_beneath(engine, source).columns.get(policy.person)
    except PolicyError:  # the view chooses rows, or computes columns
        return None
