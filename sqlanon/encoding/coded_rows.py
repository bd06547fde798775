"""The statement that codes a source's rows.

Each dictionary is a join, and planning a join is the dearer the more of them a SELECT has: 48 take DuckDB 0.2 s,
400 more than a minute. So rows with many are coded in stages, a few words each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from sqlanon.encoding.dictionaries import key_of, plain_value
from sqlanon.encoding.fields import Field, word_column
from sqlanon.engines.base import Engine
from sqlanon.plan.plan import Plan
from sqlanon.policy import Role
from sqlanon.sql import Expression, Identifier, Relation, Renderer, Statement, free_name, macro
from sqlanon.values.expressions import in_base_type
from sqlanon.work.workspace import Workspace

MOST_JOINS = 48  # of dictionaries in one SELECT, but for a word that has more by itself


SNAPSHOT = "snapshot"  # what the name of a copy ends in that stands for the source


def encode_statement(
    engine: Engine,
    plan: Plan,
    packed: tuple[Sequence[Field], int],
    table: Relation,
    *,
    raw: Sequence[Field] = (),
    share: float = 1.0,
) -> Statement:
    """Write the rows of the source as words of codes into the work table `table`.

    packed: the fields, and the number of their words; raw: those whose values go along, as `r0, …` and `v0, …`;
    share: the chance of a row to be among those written, all by default.
    """
    fields, words = packed
    *early, last = _groups(fields, words)
    stages = [_stage(engine, fields, early, number, raw) for number in range(len(early))]
    done = [{"name": word_column(w), "codes": macro("codes.in_source", _carried(fields, w))} for g in early for w in g]
    named = {word["name"]: word for word in [*done, *_words(engine, fields, last)]}
    return engine.render(
        "encoding/encode_rows",
        rows=table,
        source=plan.source,
        stages=stages,
        words=[named[word_column(word)] for word in range(words)],
        raw=[{"name": raw_column(fields, field), "value": _raw_value(engine.render, field)} for field in raw],
        dictionaries=_joins(engine, fields, last),
        share=share,
    )


def _groups(fields: Sequence[Field], words: int) -> list[list[int]]:
    """The words, in groups that need few dictionaries."""
    groups: list[list[int]] = [[]]
    joins = 0
    for word in range(words):
        needed = sum(field.word == word and field.coding.is_looked_up for field in fields)
        if groups[-1] and joins + needed > MOST_JOINS:
            groups.append([])
            joins = 0
        groups[-1].append(word)
        joins += needed
    return groups


def _stage(
    engine: Engine, fields: Sequence[Field], groups: list[list[int]], number: int, raw: Sequence[Field]
) -> dict[str, Any]:
    """The words of one group, beside those of groups before it and the columns that are read later."""
    before = [word for group in groups[:number] for word in group]
    done = {*before, *groups[number]}
    carried = {field.number for field in raw}
    later = [field for field in fields if field.word not in done or field.number in carried]
    columns = dict.fromkeys(Identifier(field.attribute.name) for field in later)
    words = [
        {**word, "name": _carried(fields, n)}
        for n, word in zip(groups[number], _words(engine, fields, groups[number]), strict=True)
    ]
    return {
        "columns": [*columns, *(_carried(fields, word) for word in before)],
        "words": words,
        "dictionaries": _joins(engine, fields, groups[number]),
    }


def _carried(fields: Sequence[Field], word: int) -> Identifier:
    """The name of a word beside columns of the source, none of which has it."""
    return free_name(word_column(word).name, [field.attribute.name for field in fields])


def _words(engine: Engine, fields: Sequence[Field], group: Iterable[int]) -> list[dict[str, Any]]:
    codes = {(f.word, f.shift): _code_expression(engine.render, f) for f in fields if f.coding.bits}
    of_word = {w: [code for (word, _), code in codes.items() if word == w] for w in group}
    return [{"name": word_column(w), "codes": macro("codes.sum", of_word[w])} for w in group]


def _joins(engine: Engine, fields: Sequence[Field], group: Iterable[int]) -> list[dict[str, Any]]:
    words = set(group)
    return [_dictionary_join(engine, f) for f in fields if f.word in words and f.coding.is_looked_up]


def raw_column(fields: Sequence[Field], field: Field) -> Identifier:
    """The column of a field's raw value: quasi-identifiers are numbered, and kept columns are."""
    quasi = field.attribute.role is Role.QUASI_IDENTIFIER
    before = (f for f in fields[: field.number] if (f.attribute.role is Role.QUASI_IDENTIFIER) is quasi)
    return Identifier(f"{'r' if quasi else 'v'}{sum(1 for _ in before)}")


def _source_column(field: Field) -> Expression:
    return macro("codes.in_source", Identifier(field.attribute.name))


def _raw_value(render: Renderer, field: Field) -> Expression:
    return in_base_type(render, field.attribute.column, _source_column(field))


def _coded_column(render: Renderer, field: Field) -> Expression:
    """The number that a value of the source is coded with."""
    return field.attribute.limits.coded(render, _source_column(field), field.attribute.column)


def _code_expression(render: Renderer, field: Field) -> Expression:
    """The field's code, in place."""
    return macro("codes.placed", _code_of_value(render, field), field.shift)


def _code_of_value(render: Renderer, field: Field) -> Expression:
    """The code of a value; NULL where the value is."""
    coding = field.coding
    if coding.is_aside:
        return render.macro("number_of_row")
    if coding.dictionary is not None:
        return macro("codes.looked_up", field.number)
    if coding.scale is not None:
        return macro("codes.of_units", coding.whole_of(render, _coded_column(render, field)), coding.before)
    column, origin = _coded_column(render, field), coding.origin or 0
    is_small = origin > -(2**63) and origin + coding.leaves < 2**63
    return macro("codes.of_whole", column, coding.before, is_cast_first=is_small)


def _dictionary_join(engine: Engine, field: Field) -> dict[str, Any]:
    expression_of = key_of if field.coding.keyed else plain_value
    return {
        "table": field.coding.dictionary,
        "alias": Identifier(f"d{field.number}"),
        "key": Identifier("key" if field.coding.keyed else "value"),
        "value": expression_of(engine, field.attribute, _source_column(field)),
    }


def unchanging(engine: Engine, plan: Plan, workspace: Workspace) -> Plan:
    """Plan for a source that stays as it is inside of the transaction: a copy, where the engine has no snapshots."""
    return plan if engine.traits.has_snapshots else copied(engine, plan, workspace, SNAPSHOT)


def copied(
    engine: Engine, plan: Plan, workspace: Workspace, meaning: str = "source", row_filter: Expression | None = None
) -> Plan:
    """Plan for a copy of the source's columns that a release shows, or models look at; whoever makes it drops it.

    meaning: of the copy, for its name. row_filter: a condition on rows `s` of the source; others are left out.
    """
    copy = workspace.table(meaning)
    columns = [Identifier(attribute.name) for attribute in plan.coded]
    engine.run("encoding/copy_source", copy=copy, source=plan.source, columns=columns, row_filter=row_filter)
    engine.analyze(copy)
    return replace(plan, source=copy)
