"""One snapshot of the source, coded: what every search works on.

Each attribute's values become order-preserving integers, packed into few BIGINT words (DESIGN: "Encoding"; the star schema of
Incognito, SIGMOD 2005, section 3). All of it happens in one transaction, so a source that changes is seen as of one moment.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from sqlanon.engines.base import Engine, Kind
from sqlanon.fields import Coding, Field, place, word_column
from sqlanon.hierarchies import build_hierarchy
from sqlanon.plan import Attribute, Plan
from sqlanon.policy import Role
from sqlanon.sql import Identifier, Relation, expression
from sqlanon.workspace import Workspace

LOOK_DIFFERENT = (Kind.FLOAT, Kind.DECIMAL, Kind.OTHER)  # -0.0 and 0.0, 1.0 and 1.00: equal, but not byte for byte
NARROW = 2**31 - 2  # an integer range that needs no dictionary
WITNESS_ROWS = 1_000_000  # up to so many rows, all of them witness the recoding
WITNESS_SAMPLE = 100_000  # expected size of the random sample above


@dataclass(frozen=True)
class CodedTable:
    """The microdata as words of codes.

    rows: work table `(p0, p1, …)`, one row a source row.
    multiset: the kept columns of the source with `n`, how often their values occur; None if nothing is kept.
    witness: raw quasi-identifier values `(r0, r1, …)` beside the same words, of all rows or of a random sample.
    """

    rows: Relation
    witness: Relation
    witness_is_sample: bool
    multiset: Relation | None
    source_rows: int
    words: int
    fields: tuple[Field, ...]

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


def encode(engine: Engine, plan: Plan, workspace: Workspace) -> CodedTable:
    """Code the source; must run inside `engine.transaction()` so that all statements see one snapshot."""
    rows, ranges = _measure_source(engine, plan)
    codings = [_code(engine, plan, workspace, n, a, ranges.get(a.name)) for n, a in enumerate(plan.attributes)]
    engine.analyze(*(coding.dictionary for coding in codings if coding.dictionary is not None))
    fields, words = place(codings)
    coded = workspace.table("coded")
    engine.execute(_encode_statement(engine, plan, fields, words, coded, raw=False, share=None))
    is_sample = rows > WITNESS_ROWS
    witness = workspace.table("witness")
    share = WITNESS_SAMPLE / rows if is_sample else None
    engine.execute(_encode_statement(engine, plan, fields, words, witness, raw=True, share=share))
    engine.analyze(coded, witness)
    return CodedTable(coded, witness, is_sample, _count_kept(engine, plan, workspace), rows, words, tuple(fields))


def _count_kept(engine: Engine, plan: Plan, workspace: Workspace) -> Relation | None:
    """What the release must still hold. Where equal values can look different, or have no equality, rows are not grouped."""
    if not plan.kept:
        return None
    table = workspace.table("multiset")
    columns = [Identifier(attribute.name) for attribute in plan.kept]
    groups = not any(attribute.column.kind in LOOK_DIFFERENT for attribute in plan.kept)
    engine.run("encoding/count_kept", multiset=table, source=plan.source, columns=columns, groups=groups)
    return table


def _measure_source(engine: Engine, plan: Plan) -> tuple[int, dict[str, tuple[Any, Any]]]:
    integers = [a for a in plan.attributes if a.column.kind is Kind.INTEGER and a.hierarchy is None]
    columns = [Identifier(a.name) for a in integers]
    count, *bounds = engine.query_one("encoding/measure_source", source=plan.source, integers=columns)
    return count, {a.name: (bounds[2 * i], bounds[2 * i + 1]) for i, a in enumerate(integers)}


def _code(
    engine: Engine, plan: Plan, workspace: Workspace, number: int, attribute: Attribute, bounds: tuple[Any, Any] | None
) -> Coding:
    if bounds is not None and bounds[0] is None:
        return Coding(attribute, bits=0, leaves=0, origin=0)
    if bounds is not None and bounds[1] - bounds[0] <= NARROW:
        low, high = (int(b) for b in bounds)
        return Coding(attribute, bits=(high - low + 1).bit_length(), leaves=high - low + 1, origin=low)
    keyed = attribute.role is not Role.QUASI_IDENTIFIER and attribute.column.kind in LOOK_DIFFERENT
    values = workspace.table(f"values_{number}")
    _create_values(engine, plan.source, attribute, values, keyed)
    dictionary = workspace.table(f"dictionary_{number}")
    if attribute.hierarchy is not None:
        tree = build_hierarchy(engine, attribute.hierarchy, attribute.column, values, dictionary, plan.base_directory)
        coding = Coding(attribute, tree.shifts[-1], tree.leaves, dictionary=dictionary, hierarchy=tree)
    else:
        leaves = engine.run(
            "encoding/create_dictionary", dictionary=dictionary, values=values, order=_order(engine, attribute, keyed)
        )
        if leaves < 0:
            (leaves,) = engine.query_one("count_rows", table=dictionary)
        coding = Coding(attribute, leaves.bit_length(), leaves, dictionary=dictionary, keyed=keyed)
    workspace.drop(values)
    return coding


def _create_values(engine: Engine, source: Relation, attribute: Attribute, values: Relation, keyed: bool) -> None:
    value = _plain(engine, attribute, Markup("s.v"))
    key = _key(engine, attribute, Markup("s.v")) if keyed else value
    engine.run(
        "encoding/create_values",
        values=values,
        source=source,
        column=Identifier(attribute.name),
        value=engine.render.macro("any", Markup("s.v")) if keyed else value,
        key_column=Markup(", {} AS key").format(key) if keyed else Markup(""),
        group=key,
    )


def _plain(engine: Engine, attribute: Attribute, value: Markup) -> Markup:
    """The value a quasi-identifier is coded by: equal decimals of other scales are one value, written one way."""
    if attribute.role is Role.QUASI_IDENTIFIER and attribute.column.type == "numeric":
        return engine.render.macro("trim_scale", value)
    return value


def _key(engine: Engine, attribute: Attribute, value: Markup) -> Markup:
    """What tells kept values apart byte for byte, where the engine's own equality doesn't (-0.0 and 0.0, 1.0 and 1.00)."""
    macro = "exact_other" if attribute.column.kind is Kind.OTHER else "exact_number"
    return engine.render.macro(macro, value)


def _order(engine: Engine, attribute: Attribute, keyed: bool) -> Markup:
    if attribute.column.kind is Kind.TEXT:
        return engine.render.macro("collate", Markup("v.value"))
    if attribute.column.kind is Kind.OTHER:
        return Markup("v.key")
    return Markup("v.value, v.key") if keyed else Markup("v.value")


def _encode_statement(
    engine: Engine, plan: Plan, fields: list[Field], words: int, table: Relation, *, raw: bool, share: float | None
) -> Any:
    codes = {f.number: _code_expression(f) for f in fields if f.coding.bits}
    named_words = [
        {"name": word_column(w), "codes": _packed(codes[f.number] for f in fields if f.word == w and f.coding.bits)}
        for w in range(words)
    ]
    quasi = [f for f in fields if f.attribute.role is Role.QUASI_IDENTIFIER] if raw else []
    raw_columns = [{"name": Identifier(f"r{i}"), "value": _source_column(f)} for i, f in enumerate(quasi)]
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


def _source_column(field: Field) -> Markup:
    return Markup("s.") + Markup(str(Identifier(field.attribute.name)))


def _code_expression(field: Field) -> Markup:
    coding = field.coding
    if coding.dictionary is not None:
        code = expression("coalesce(d{number}.code, 0)", number=field.number)
    else:
        column = _source_column(field)
        origin = coding.origin or 0
        fits = -(2**63) <= origin and origin + coding.leaves < 2**63
        value = expression("CAST({column} AS BIGINT)", column=column) if fits else column
        code = expression("coalesce(CAST({value} - ({origin}) AS BIGINT) + 1, 0)", value=value, origin=origin)
    return expression("({code} << {shift})", code=code, shift=field.shift) if field.shift else code


def _packed(codes: Iterable[Markup]) -> Markup:
    return Markup(" | ").join(codes) or Markup("CAST(0 AS BIGINT)")


def _dictionary_join(engine: Engine, field: Field) -> dict[str, Any]:
    column = _plain(engine, field.attribute, _source_column(field))
    return {
        "table": field.coding.dictionary,
        "alias": Identifier(f"d{field.number}"),
        "key": Identifier("key" if field.coding.keyed else "value"),
        "value": _key(engine, field.attribute, column) if field.coding.keyed else column,
    }
