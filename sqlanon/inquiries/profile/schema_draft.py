"""Drafts one policy for the tables of a schema: YAML that loads as it stands, with the facts as comments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlanon.engines.urls import holds_secret
from sqlanon.inquiries.profile.column_facts import ColumnFacts
from sqlanon.inquiries.profile.draft import (
    SCHEMA_FILE,
    URL_VARIABLE,
    choose_k,
    column_line,
    key_of,
    model_line,
)
from sqlanon.inquiries.profile.schema_keys import Reference, SchemaFacts, SchemaTable
from sqlanon.inquiries.profile.writing import comment, quoted
from sqlanon.policy import Role
from sqlanon.sql import Identifier, Relation, Renderer
from sqlanon.support.environment import without_references, written
from sqlanon.support.quantities import quantity

KNOWN_ROWS = 2  # of a person's rows in one table, that somebody may know
WITHIN = 4  # times the persons that others need, are in a class of people
SUPPRESSION = 0.1  # of a table's rows, that may be left out for its models


@dataclass(frozen=True)
class SchemaDraft:
    """A drafted policy of several tables: its text, and what it rests on."""

    text: str
    facts: SchemaFacts

    def as_json(self) -> dict[str, Any]:
        """One object of plain values."""
        return {
            "policy": self.text,
            "people": self.facts.people.name,
            "tables": {
                one.name: {
                    **one.facts.as_json(),
                    "key": one.key,
                    "references": [vars(reference) for reference in one.references],
                }
                for one in self.facts.tables
            },
        }


def propose_tables(facts: SchemaFacts, url: str, render: Renderer) -> SchemaDraft:
    """Draft the policy; a password in the URL is not written. render: writes the statements of views."""
    drafting = _Drafting(facts, render)
    sections = [
        drafting.heading(),
        _places(facts, url),
        f"people: {{table: {key_of(facts.people.name)}, key: {key_of(str(facts.people.key))}}}",
        "tables:\n" + "\n\n".join(drafting.table(one) for one in facts.tables),
        "privacy:\n" + "\n".join(drafting.models()),
        "algorithm: {name: mondrian}    # of the table of people",
    ]
    return SchemaDraft("\n\n".join(sections) + "\n", facts)


def _places(facts: SchemaFacts, url: str) -> str:
    text, note = written(url), ""
    if holds_secret(without_references(text)):
        text, note = f"${{{URL_VARIABLE}}}", f"    # the URL holds a password: set {URL_VARIABLE} to it"
    return (
        f"source:  {{url: {quoted(text)}, schema: {quoted(facts.schema)}}}{note}\n"
        f"release: {{schema: {quoted(facts.schema + '_released')}}}    # make this schema before the first run"
    )


class _Drafting:
    """The parts of a draft."""

    def __init__(self, facts: SchemaFacts, render: Renderer) -> None:
        self._facts, self._render = facts, render
        self._steps = {one.name: facts.distance(one.name) for one in facts.tables}
        self._direct = {
            one.name
            for one in facts.tables
            if self._steps[one.name] == 0 or any(reference.table == facts.people.name for reference in one.references)
        }

    def heading(self) -> str:
        facts = self._facts
        rows = sum(one.facts.rows for one in facts.tables)
        return (
            f"# yaml-language-server: $schema={SCHEMA_FILE}\n"
            f"# A draft for {quantity(len(facts.tables), 'table')} of schema {comment(facts.schema)}, with"
            f" {quantity(rows, 'row')}.\n"
            "# Every role is a proposal: look at each, then run `sqlanon check` on this file.\n"
            "# Roles: identifier (names persons: never leaves), quasi-identifier (others may know it: generalized),\n"
            "#        sensitive (kept, protected by the models), insensitive (kept), omit (left out).\n"
            "# The released tables are joined by pseudonyms, which are drawn anew for each release."
        )

    def table(self, table: SchemaTable) -> str:
        """Write a table; as a comment where it refers to people by other tables alone."""
        about = self._steps[table.name] is not None
        lines = [f"  {key_of(table.name)}:    # {self._facts_of(table)}", *self._references(table)]
        if about and table is not self._facts.people:
            lines.append(f"    suppression: {SUPPRESSION}    # the largest share of rows that may be left out")
        if self._is_referred_to(table.name) and table.key is not None and table is not self._facts.people:
            lines.append(f"    key: {key_of(table.key)}")
        lines += ["    attributes:", *(f"    {line}" for line in self._attributes(table, about=about))]
        if about and table.name not in self._direct:
            view = self._view(table)
            return "\n".join([*view, *(f"  #{line[1:]}" for line in lines)])
        return "\n".join(lines)

    def _facts_of(self, table: SchemaTable) -> str:
        steps = self._steps[table.name]
        kind = "about no person" if steps is None else "one row a person" if steps == 0 else "rows of persons"
        return f"{quantity(table.facts.rows, 'row')}, {kind}"

    def _references(self, table: SchemaTable) -> Iterator[str]:
        if not table.references:
            return
        named = ", ".join(f"{key_of(one.column)}: {key_of(one.table)}" for one in table.references)
        notes = "; ".join(note for one in table.references if (note := _note(one)))
        yield f"    references: {{{named}}}" + (f"    # {notes}" if notes else "")

    def _attributes(self, table: SchemaTable, *, about: bool) -> Iterator[str]:
        referring = {one.column: one.table for one in table.references}
        for facts in table.facts.columns:
            if facts.name in referring:
                yield from self._reference_line(facts, referring[facts.name])
                continue
            if facts.name == table.key and (table is self._facts.people or self._is_referred_to(table.name)):
                yield self._key_line(table, facts, about=about)
            else:
                yield column_line(table.facts, facts, None if about else Role.INSENSITIVE)

    def _reference_line(self, facts: ColumnFacts, other: str) -> Iterator[str]:
        """Write a column that refers to a table about no person; others show what the key there shows."""
        if self._steps[other] is None:
            yield (
                f"  {key_of(facts.name)}: {{role: insensitive}}    # kept as it is to join {comment(other)}, and judged"
                " by no model: say quasi-identifier or omit if others may know it"
            )

    def _key_line(self, table: SchemaTable, facts: ColumnFacts, *, about: bool) -> str:
        if table is self._facts.people:
            return f"  {key_of(facts.name)}: {{role: identifier}}    # the key of people, shown as a pseudonym"
        if about:
            return (
                f"  {key_of(facts.name)}: {{role: identifier, show: pseudonym, key: drawn}}    # the key that others"
                " refer to"
            )
        return f"  {key_of(facts.name)}: {{role: insensitive}}    # the key that others refer to"

    def _is_referred_to(self, name: str) -> bool:
        return any(one.table == name for table in self._facts.tables for one in table.references)

    def _view(self, table: SchemaTable) -> list[str]:
        """Write how a table gets the key of the people, to which it refers by others alone."""
        way = next(one for one in table.references if self._steps[one.table] is not None)
        place = Relation(f"{table.name}_of_people", self._facts.schema)
        own, other = (Relation(name, self._facts.schema) for name in (table.name, way.table))
        statement = self._render(
            "inquiries/profile/create_view_with_people",
            view=place,
            table=own,
            other=other,
            people=Identifier(self._people_column(way.table)),
            key=Identifier(way.key),
            column=Identifier(way.column),
        )
        return [
            f"  # {comment(table.name)} refers to people by {comment(way.table)} alone. To release it, make a view",
            "  # that has their key, name the view in place of the table, and let it refer to them by that key too:",
            *(f"  #   {comment(line)}" for line in statement.text.splitlines()),
        ]

    def _people_column(self, name: str) -> str:
        table = next(one for one in self._facts.tables if one.name == name)
        direct = [one.column for one in table.references if one.table == self._facts.people.name]
        return direct[0] if direct else str(self._facts.people.key)

    def models(self) -> Iterator[str]:
        """List the lines of the models."""
        people = self._facts.people
        rows = people.facts.rows
        k = min(rows, WITHIN * choose_k(rows)) if len(self._direct) > 1 else choose_k(rows)
        yield (
            f"  - {{model: k-anonymity, k: {k}}}    # of persons, by the columns of {comment(people.name)}; a larger k"
            " keeps more of their rows elsewhere"
        )
        for table in self._facts.tables:
            if table.name not in self._direct:
                continue
            quasi = [one for one in table.facts.named(Role.QUASI_IDENTIFIER) if not self._is_key(table, one)]
            if quasi and table is not people:
                parameters = f"k: {max(2, k // WITHIN)}, m: {KNOWN_ROWS}, of: [{key_of(table.name)}]"
                yield (
                    f"  - {{model: km-anonymity, {parameters}}}"
                    f"    # by any {KNOWN_ROWS} of their rows there, within the classes of {comment(people.name)}"
                )
            for facts in table.facts.named(Role.SENSITIVE):
                if not self._is_key(table, facts):
                    yield model_line(facts, f"{table.name}.")

    def _is_key(self, table: SchemaTable, facts: ColumnFacts) -> bool:
        return facts.name in {table.key, *(one.column for one in table.references)}


def _note(one: Reference) -> str:
    """Say what may not be right of a reference."""
    notes = [f"{one.column} by its name alone"] if one.is_named else []
    notes += [f"{one.orphans:,} rows of {one.column} refer to no row"] if one.orphans else []
    return comment(", ".join(notes))
