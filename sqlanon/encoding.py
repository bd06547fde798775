"""One snapshot of the source, coded: what every search works on.

Each attribute's values become order-preserving integers, packed into few BIGINT words (DESIGN: "Encoding"; the star
schema of Incognito, SIGMOD 2005, section 3). All of it happens in one transaction, so a source that changes is seen as
of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from markupsafe import Markup

from sqlanon.dictionaries import LOOK_DIFFERENT, code_attribute, code_by_value, key_of, plain_value
from sqlanon.engines.base import Engine, Kind
from sqlanon.engines.files import source_file
from sqlanon.errors import ConflictError
from sqlanon.fields import Field, place, word_column
from sqlanon.fractions import Range, measure_fractions
from sqlanon.plan import Plan
from sqlanon.policy import Role
from sqlanon.release_checks import count_column
from sqlanon.sql import Identifier, Relation, Renderer, expression
from sqlanon.workspace import Workspace

WITNESS_ROWS = 1_000_000  # up to so many rows, all of them witness the recoding
WITNESS_SAMPLE = 100_000  # expected size of the random sample above


@dataclass(frozen=True)
class CodedTable:
    """The microdata as words of codes.

    rows: work table `(p0, p1, …)`, one row a source row.
    multiset: the kept columns of the source, and how often their values occur; None if nothing is kept.
    witness: raw quasi-identifier values `(r0, r1, …)` and kept values `(v0, v1, …)` beside the same words, of all rows
        or of a random sample.
    fields: one for each attribute, in the source's order.
    judged: further fields, of sensitive attributes that models see otherwise than they are kept.
    """

    rows: Relation
    witness: Relation
    witness_is_sample: bool
    multiset: Relation | None
    source_rows: int
    words: int
    fields: tuple[Field, ...]
    judged: tuple[Field, ...]

    @property
    def quasi_identifiers(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if f.attribute.role is Role.QUASI_IDENTIFIER)

    @property
    def kept(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if f.attribute.role is not Role.QUASI_IDENTIFIER)

    @property
    def word_columns(self) -> tuple[Identifier, ...]:
        return tuple(word_column(w) for w in range(self.words))

    def field(self, name: str) -> Field:
        return next(f for f in self.fields if f.attribute.name == name)

    def judged_field(self, name: str) -> Field:
        """The field in which equal values have equal codes, and groups of the attribute's hierarchy are intervals."""
        return next((f for f in self.judged if f.attribute.name == name), self.field(name))


def encode(engine: Engine, plan: Plan, workspace: Workspace, fitting: Markup | None = None) -> CodedTable:
    """Code the source; must run inside `engine.transaction()` so that all statements see one snapshot.

    fitting: a condition on rows `s` of the source; others are left out.
    """
    file = plan.policy.source.file
    measured = _measure_source(engine, plan) if fitting is None else None
    if measured is not None and (file is None or source_file(file).format == "parquet"):
        return _encode(engine, plan, workspace, *measured)
    copy = workspace.table("source")
    columns = [Identifier(attribute.name) for attribute in plan.attributes]
    engine.run("encoding/copy_source", copy=copy, source=plan.source, columns=columns, fitting=fitting)
    engine.analyze(copy)
    copied = replace(plan, source=copy)
    coded = _encode(engine, copied, workspace, *(measured or _measure_source(engine, copied)))
    workspace.drop(copy)
    return coded


def _encode(engine: Engine, plan: Plan, workspace: Workspace, rows: int, ranges: dict[str, Range]) -> CodedTable:
    kept = [code_attribute(engine, plan, workspace, n, a, ranges.get(a.name)) for n, a in enumerate(plan.attributes)]
    by_value = (code_by_value(engine, plan, workspace, len(kept) + n, coding) for n, coding in enumerate(kept))
    codings = [*kept, *(coding for coding in by_value if coding is not None)]
    engine.analyze(*(coding.dictionary for coding in codings if coding.dictionary is not None))
    fields, words = place(codings)
    coded = workspace.table("coded")
    engine.execute(_encode_statement(engine, plan, fields, words, coded, raw=False, share=None))
    is_sample = rows > WITNESS_ROWS
    witness = workspace.table("witness")
    share = WITNESS_SAMPLE / rows if is_sample else None
    engine.execute(_encode_statement(engine, plan, fields, words, witness, raw=True, share=share))
    engine.analyze(coded, witness)
    multiset = _count_kept(engine, plan, workspace)
    each, judged = tuple(fields[: len(kept)]), tuple(fields[len(kept) :])
    return CodedTable(coded, witness, is_sample, multiset, rows, words, each, judged)


def _count_kept(engine: Engine, plan: Plan, workspace: Workspace) -> Relation | None:
    """What the release must still hold; rows are not grouped where equal values can look different."""
    if not plan.kept:
        return None
    table = workspace.table("multiset")
    columns = [Identifier(attribute.name) for attribute in plan.kept]
    groups = not any(attribute.column.kind in LOOK_DIFFERENT for attribute in plan.kept)
    count = count_column([attribute.name for attribute in plan.kept])
    engine.run("encoding/count_kept", multiset=table, source=plan.source, columns=columns, count=count, groups=groups)
    return table


def _measure_source(engine: Engine, plan: Plan) -> tuple[int, dict[str, Range]]:
    integers = [a for a in plan.attributes if a.column.kind is Kind.INTEGER and a.hierarchy is None]
    columns = [Identifier(a.name) for a in integers]
    refusing = [Identifier(a.name) for a in plan.attributes if plan.policy.attributes[a.name].nulls == "refuse"]
    count, *found = engine.query_one("encoding/measure_source", source=plan.source, integers=columns, refusing=refusing)
    if not count:
        raise ConflictError(f"{plan.source_name} was emptied after the run began.")
    bounds, nulls = found[: 2 * len(columns)], found[2 * len(columns) :]
    if any(nulls):
        raise ConflictError(f"{plan.source_name} got NULLs that the policy refuses after the run began.")
    lows, highs = ([None if b is None else int(b) for b in bounds[side::2]] for side in (0, 1))
    ranges = {a.name: Range(low, high) for a, low, high in zip(integers, lows, highs, strict=True)}
    return count, ranges | measure_fractions(engine, plan)


def _encode_statement(
    engine: Engine, plan: Plan, fields: list[Field], words: int, table: Relation, *, raw: bool, share: float | None
) -> Any:
    codes = {f.number: _code_expression(engine.render, f) for f in fields if f.coding.bits}
    named_words = [
        {"name": word_column(w), "codes": _packed(codes[f.number] for f in fields if f.word == w and f.coding.bits)}
        for w in range(words)
    ]
    raw_columns = _raw_columns(fields[: len(plan.attributes)]) if raw else []
    dictionaries = [_dictionary_join(engine, f) for f in fields if f.coding.dictionary is not None]
    return engine.render(
        "encoding/encode_rows",
        rows=table,
        source=plan.source,
        words=named_words,
        raw=raw_columns,
        dictionaries=dictionaries,
        share=share,
    )


def _raw_columns(fields: list[Field]) -> list[dict[str, Identifier | Markup]]:
    quasi = [f for f in fields if f.attribute.role is Role.QUASI_IDENTIFIER]
    kept = [f for f in fields if f.attribute.role is not Role.QUASI_IDENTIFIER]
    named = [("r", i, f) for i, f in enumerate(quasi)] + [("v", i, f) for i, f in enumerate(kept)]
    return [{"name": Identifier(f"{letter}{i}"), "value": _source_column(f)} for letter, i, f in named]


def _source_column(field: Field) -> Markup:
    return Markup("s.") + Markup(str(Identifier(field.attribute.name)))


def _code_expression(render: Renderer, field: Field) -> Markup:
    coding = field.coding
    if coding.dictionary is not None:
        code = expression("coalesce(d{number}.code, 0)", number=field.number)
    elif coding.scale is not None:
        whole = coding.whole_of(render, _source_column(field))
        code = expression("coalesce({whole} - ({least}) + 1, 0)", whole=whole, least=coding.least)
    else:
        column = _source_column(field)
        origin = coding.origin or 0
        fits = origin >= -(2**63) and origin + coding.leaves < 2**63
        value = expression("CAST({column} AS BIGINT)", column=column) if fits else column
        code = expression("coalesce(CAST({value} - ({least}) AS BIGINT) + 1, 0)", value=value, least=coding.least)
    return expression("({code} << {shift})", code=code, shift=field.shift) if field.shift else code


def _packed(codes: Iterable[Markup]) -> Markup:
    return Markup(" | ").join(codes) or Markup("CAST(0 AS BIGINT)")


def _dictionary_join(engine: Engine, field: Field) -> dict[str, Any]:
    look = key_of if field.coding.keyed else plain_value
    return {
        "table": field.coding.dictionary,
        "alias": Identifier(f"d{field.number}"),
        "key": Identifier("key" if field.coding.keyed else "value"),
        "value": look(engine, field.attribute, _source_column(field)),
    }
