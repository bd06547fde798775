"""The division of a policy of several tables in one policy for each."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from sqlanon.engines.dialects import find_dialect
from sqlanon.errors import PolicyError
from sqlanon.policy import joining
from sqlanon.policy.attributes import Role
from sqlanon.policy.document import Document, Path, read_document
from sqlanon.policy.keys import DRAWN, DrawnKey
from sqlanon.policy.loading import build_document, read_policy
from sqlanon.policy.problems import problems_of
from sqlanon.policy.tables import TablePart, Tables, TablesPolicy, problems_within
from sqlanon.sql import Relation
from sqlanon.support.environment import named, resolved
from sqlanon.support.suggest import any_of, did_you_mean

COPYING = "masking"  # the algorithm of tables that are about no person
PARTITIONING = "mondrian"  # the algorithm of tables that refer to people
SHARED = ("catalog", "trust", "republish", "digest")  # keys that hold for every table
NO_MODEL = {"model": "k-anonymity", "k": 1}  # of rows that tell nothing beside whose they are
OF = "of"
KEY = "tables"


def is_of_tables(document: Document) -> bool:
    """Tell whether a policy is one of several tables."""
    return isinstance(document.data, dict) and KEY in document.data


def build_tables(document: Document, base_directory: str | os.PathLike[str] | None) -> Tables:
    """Divide a policy of several tables in the policies of each; raises one PolicyError with everything wrong."""
    try:
        whole = TablesPolicy.model_validate(document.data)
    except ValidationError as error:
        raise PolicyError([*document.problems, *problems_of(error, document, TablesPolicy)]) from None
    dialect = find_dialect(resolved(named(whole.source.url)))
    if dialect is not None and not dialect.has_transactions:
        raise PolicyError(joining.unpublished(dialect.label))
    problems = [*document.problems, *_problems(whole, document)]
    if problems:
        raise PolicyError(problems)
    return _Division(whole, document, base_directory).divide()


def load_tables(path: str | os.PathLike[str]) -> Tables | None:
    """Read a policy file of several tables; None where the policy is of one table."""
    text = read_policy(path)
    if KEY not in text:
        return None
    document = read_document(text)
    return build_tables(document, FilePath(path).parent) if is_of_tables(document) else None


def _problems(whole: TablesPolicy, document: Document) -> Iterator[str]:
    """Say what does not go together in the tables."""
    people = whole.people
    if people.table not in whole.tables:
        yield _unknown(document, ("people", "table"), people.table, whole.tables)
    elif whole.tables[people.table].key not in (None, people.key):
        yield (
            f"{document.place(('tables', people.table, 'key'))}: others refer to people by people.key,"
            f" '{people.key}'; leave it out."
        )
    elif people.key not in whole.tables[people.table].attributes:
        names = whole.tables[people.table].attributes
        yield f"{document.place(('people', 'key'))}: '{people.key}' is not among the attributes of {people.table};" + (
            f" {did_you_mean(people.key, names)}"
        )
    for name, table in whole.tables.items():
        for column, other in table.references.items():
            path: Path = ("tables", name, "references", column)
            if other not in whole.tables:
                yield _unknown(document, path, other, whole.tables)
            elif whole.tables[other].key is None and _key_of(whole, other, column) is None:
                yield (
                    f"{document.place(path)}: {other} has no attribute '{column}', so that its key is unknown: name it,"
                    f" as key: … of {other}."
                )
    if all(other in whole.tables for table in whole.tables.values() for other in table.references.values()):
        yield from _cycles(whole, document)


def _cycles(whole: TablesPolicy, document: Document) -> Iterator[str]:
    """Name a cycle of references, by which no table could be released first."""
    for name in whole.tables:
        trail, seen = [name], {name}
        stack = [(name, iter(whole.tables[name].references.values()))]
        while stack:
            other = next(stack[-1][1], None)
            if other is None:
                seen.add(stack.pop()[0])
                trail.pop()
            elif other in trail:
                around = " → ".join([*trail[trail.index(other) :], other])
                yield (
                    f"{document.place(('tables', trail[-1], 'references'))}: the tables refer to each other in a"
                    f" circle, {around}; give one of these columns the role omit, and leave its reference out."
                )
                return
            elif other not in seen:
                trail.append(other)
                stack.append((other, iter(whole.tables[other].references.values())))


def _unknown(document: Document, path: Path, name: str, tables: Mapping[str, Any]) -> str:
    return f"{document.place(path)}: '{name}' is not among the tables; {did_you_mean(name, tables)}"


def _key_of(whole: TablesPolicy, table: str, column: str) -> str | None:
    """Name the column of a table that a column of another one refers to; None where nothing says it."""
    if table == whole.people.table:
        return whole.people.key
    section = whole.tables[table]
    return section.key or (column if column in {*section.attributes, *section.references} else None)


class _Division:
    """The division of a policy in one for each table."""

    def __init__(self, whole: TablesPolicy, document: Document, base: str | os.PathLike[str] | None) -> None:
        self._whole, self._document, self._base = whole, document, base
        self._drawn = DrawnKey()  # one for the whole release
        self._attributes: dict[str, dict[str, Any]] = {}
        self._problems: list[str] = []
        self._about: dict[str, str] = {}  # tables about people, with the column of the people's key

    def divide(self) -> Tables:
        """Build the policies, the people's first."""
        order = self._order()
        for name in order:
            self._attributes[name] = self._attributes_of(name)
        models = self._models()
        self._require_models(models)
        if self._problems:
            raise PolicyError(self._problems)
        parts = [self._part(name, models.get(name, [])) for name in order]
        if self._problems:
            raise PolicyError(self._problems)
        return Tables(tuple(part for part in parts if part is not None))

    def _order(self) -> list[str]:
        """List the tables, each after those that it refers to."""
        order: dict[str, None] = {}

        def visit(name: str) -> None:
            for other in self._whole.tables[name].references.values():
                if other not in order:
                    visit(other)
            order[name] = None

        visit(self._whole.people.table)
        for name in self._whole.tables:
            visit(name)
        return list(order)

    def _attributes_of(self, name: str) -> dict[str, Any]:
        """Return the columns of a table, those that refer to others as the keys there are shown."""
        section, people = self._whole.tables[name], self._whole.people
        given = {column: copy.copy(its) for column, its in section.attributes.items()}
        if name == people.table:
            self._about[name] = people.key
            given[people.key] = self._people_key(given[people.key])
        for column, other in section.references.items():
            key = str(_key_of(self._whole, other, column))
            if other in self._about:
                place = self._place(name, "references", column)
                shown = self._attributes[other].get(key)
                self._problems += [f"{place}: {one}" for one in joining.problems(other, key, shown, given.get(column))]
                given[column] = shown
            elif column not in given:
                self._problems.append(f"{self._place(name, 'references', column)}: {joining.unlisted(column, name)}")
            if other == people.table:
                if self._about.setdefault(name, column) != column:
                    self._problems.append(f"{self._place(name, 'references')}: {joining.several(name, other)}")
                if isinstance(given.get(column), dict):  # rows of nobody are left out
                    given[column] = {"nulls": "each", **given[column]}
        deeper = [other for other in section.references.values() if other in self._about]
        if deeper and name not in self._about:
            self._problems.append(
                f"{self._place(name, 'references')}: {name} refers to {people.table} by {any_of(deeper)} alone; name a"
                f" view of it that has the key of {people.table} too, and refer to {people.table} by it."
            )
        return {column: joining.with_drawn(its, self._drawn) for column, its in given.items()}

    def _people_key(self, its: Any) -> Any:
        """Return the key of the people, which is shown by a key that is drawn for the release where none is named."""
        if not isinstance(its, dict) or its.get("role") != Role.IDENTIFIER:
            self._problems.append(
                f"{self._place(self._whole.people.table, 'attributes', self._whole.people.key)}: the key of the people"
                " needs role: identifier; it is shown as a pseudonym, by which the released tables are joined."
            )
            return its
        if its.get("show", "pseudonym") != "pseudonym":
            self._problems.append(
                f"{self._place(self._whole.people.table, 'attributes', self._whole.people.key)}: the released tables"
                " are joined by it, so it needs show: pseudonym."
            )
        return {"show": "pseudonym", "key": DRAWN, **its}

    def _models(self) -> dict[str, list[tuple[int, dict[str, Any]]]]:
        """List the models of each table, with their places in the policy."""
        models: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for place, given in enumerate(self._whole.privacy):
            model = dict(given)
            names = self._tables_of(place, model)
            for name in names:
                models.setdefault(name, []).append((place, model))
        return models

    def _tables_of(self, place: int, model: dict[str, Any]) -> list[str]:
        """Name the tables that a model is about, and take that out of the model."""
        path: Path = ("privacy", place)
        named, attribute = model.pop(OF, None), model.get("attribute")
        if isinstance(attribute, str):
            if named is not None:
                self._problems.append(
                    f"{self._document.place((*path, OF))}: the model is about the table of its attribute; leave it out."
                )
            table = max((t for t in self._whole.tables if attribute.startswith(f"{t}.")), key=len, default=None)
            if table is None:
                self._problems.append(
                    f"{self._document.place((*path, 'attribute'))}: write '{attribute}' with its table, as"
                    f" {self._whole.people.table}.{attribute}."
                )
                return []
            model["attribute"] = attribute[len(table) + 1 :]
            return [table]
        if named is None:
            return [self._whole.people.table]
        listed = [named] if isinstance(named, str) else named
        if not isinstance(listed, list) or len(listed) != 1 or not isinstance(listed[0], str):
            self._problems.append(
                f"{self._document.place((*path, OF))} must name one table, as [visits]; what somebody knows of several"
                " tables of facts together is not judged yet."
            )
            return []
        if listed[0] not in self._about:
            known = sorted(self._about)
            self._problems.append(
                f"{self._document.place((*path, OF))}: '{listed[0]}' is not among the tables about people;"
                f" {did_you_mean(listed[0], known)}"
            )
            return []
        return [listed[0]]

    def _require_models(self, models: Mapping[str, Sequence[Any]]) -> None:
        """Refuse a table about people whom no model protects."""
        protected = (Role.QUASI_IDENTIFIER, Role.SENSITIVE)
        for name in self._about:
            roles = [its.get("role") for its in self._attributes[name].values() if isinstance(its, dict)]
            is_open = any(role in protected for role in roles) or name == self._whole.people.table
            if is_open and not models.get(name):
                self._problems.append(
                    f"{self._place(name)}: no model of `privacy` is about it; add one, as {{model: km-anonymity, k: 5,"
                    f" m: 2, of: [{name}]}}."
                )

    def _part(self, name: str, models: Sequence[tuple[int, dict[str, Any]]]) -> TablePart | None:
        """Build the policy of a table; its problems are named by the places in the policy of all tables."""
        whole, section, data = self._whole, self._whole.tables[name], self._document.data
        is_people, person = name == whole.people.table, self._about.get(name)
        wanted: dict[str, Any] = {
            "source": {"url": data["source"].get("url"), "table": str(Relation(name, whole.source.schema_))},
            "release": {"table": str(Relation(name, whole.release.schema_))},
            "attributes": self._attributes[name],
        }
        wanted |= {key: data[key] for key in SHARED if key in data}
        if is_people:
            wanted |= {"algorithm": data["algorithm"]} if whole.algorithm is not None else {}
        else:
            wanted["algorithm"] = {"name": PARTITIONING if person is not None else COPYING}
        if person is not None and not is_people:
            wanted["subject"] = person
        if person is not None:
            wanted["suppression"] = section.suppression
            wanted["privacy"] = [model for _, model in models] or [NO_MODEL]
        try:
            policy = build_document(self._part_document(name, wanted, models), self._base)
        except PolicyError as error:
            self._problems += problems_within(name, error)
            return None
        if person is not None and not is_people:
            policy = policy.model_copy(update={"algorithm": policy.algorithm.within()})
        references = {
            column: (other, str(_key_of(whole, other, column)))
            for column, other in section.references.items()
            if other in self._about
        }
        key = whole.people.key if is_people else section.key or self._key_referred_to(name)
        return TablePart(name, policy, key, person, references, is_people)

    def _key_referred_to(self, name: str) -> str | None:
        """Name the column that other tables refer to; None where none does."""
        referring = (
            _key_of(self._whole, other, column)
            for table in self._whole.tables.values()
            for column, other in table.references.items()
            if other == name
        )
        return next(referring, None)

    def _part_document(
        self, name: str, wanted: dict[str, Any], models: Sequence[tuple[int, dict[str, Any]]]
    ) -> Document:
        """Make the document of one table, whose parts stand on the lines of those that they are made of."""
        lines: dict[Path, int] = {}
        places = {place: new for new, (place, _) in enumerate(models)}
        for path, line in self._document.lines.items():
            if path[:2] == ("tables", name) and path[2:3] == ("attributes",):
                lines[path[2:]] = line
            elif path[:1] == ("privacy",) and len(path) > 1 and path[1] in places:
                lines[("privacy", places[path[1]], *path[2:])] = line  # type: ignore[index]
            elif path[:1] == ("algorithm",):
                lines[path] = line
        return Document(
            copy.deepcopy({k: v for k, v in wanted.items() if k != "attributes"})
            | {"attributes": {column: copy.copy(its) for column, its in wanted["attributes"].items()}},
            lines,
        )

    def _place(self, *path: str) -> str:
        return self._document.place(("tables", *path))
