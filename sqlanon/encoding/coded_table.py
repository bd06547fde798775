"""One snapshot of the source, coded: what every search works on.

Each attribute's values become order-preserving integers, packed into few BIGINT words (DESIGN: "Encoding"; the star
schema of Incognito, SIGMOD 2005, section 3). All of it happens in one transaction, so a source that changes is seen as
of one moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlanon.encoding.coded_rows import copied, encode_statement, raw_column
from sqlanon.encoding.dictionaries import Range, code_attribute, code_by_value, measure_fractions
from sqlanon.encoding.fields import WORD_BITS, Coding, Field, place, word_column
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Kind
from sqlanon.errors import ConflictError
from sqlanon.hierarchies.ambiguity import require_one_meaning
from sqlanon.hierarchies.limits import limits_in
from sqlanon.plan.measurements import measure_source
from sqlanon.plan.plan import Attribute, Plan
from sqlanon.policy import Role
from sqlanon.sql import Expression, Identifier, Relation, free_name
from sqlanon.work.workspace import Workspace

WITNESS_ROWS = 1_000_000  # up to so many rows, all of them witness the recoding
WITNESS_SAMPLE = 100_000  # expected size of the random sample above


def sample_share(rows: int) -> float:
    """The share of so many rows that a sample of them has; 1 where all of them are looked at."""
    return min(1.0, WITNESS_SAMPLE / rows) if rows > WITNESS_ROWS else 1.0


@dataclass(frozen=True)
class _CountedSource:
    """The rows of the source, the ranges of attributes that may need no dictionary, and which have NULLs."""

    rows: int
    ranges: dict[str, Range]
    with_nulls: frozenset[str]


@dataclass(frozen=True)
class CodedTable:
    """The microdata as words of codes.

    rows: work table `(p0, p1, …)`, one row a source row.
    multiset: the kept columns of the source, and how often their values occur; None if nothing is kept.
    witness: raw quasi-identifier values `(r0, r1, …)` and kept values `(v0, v1, …)` beside the same words, of all rows
        or of a random sample.
    witness_share: of all rows, about, that are in that sample.
    fields: one for each attribute, in the source's order.
    judged: further fields, of sensitive attributes that models see otherwise than they are kept.
    person: the field of an identifier whose values are persons, where the release shows nothing of it; all rows are
        witnesses then, with its value behind those that are kept.
    with_nulls: the names of the quasi-identifiers that are NULL somewhere.
    population: work table `(p0, p1, …)`, one row a row of the population that models look at, with the codes of its
        quasi-identifiers alone.
    """

    rows: Relation
    witness: Relation
    witness_share: float
    multiset: Relation | None
    source_rows: int
    words: int
    fields: tuple[Field, ...]
    judged: tuple[Field, ...]
    with_nulls: frozenset[str]
    person: Field | None = None
    population: Relation | None = None

    @property
    def witness_is_sample(self) -> bool:
        return self.witness_share < 1

    @property
    def quasi_identifiers(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if f.attribute.role is Role.QUASI_IDENTIFIER)

    @property
    def kept(self) -> tuple[Field, ...]:
        return tuple(f for f in self.fields if f.attribute.role is not Role.QUASI_IDENTIFIER)

    @property
    def witnessed_words(self) -> list[dict[str, Identifier | int | None]]:
        """The words that a witness has in common with its coded row, with masks of the bits if these are not all.

        A sample is coded by itself, so that the numbers of its rows are others.
        """
        own = [f for f in self.kept if f.coding.is_aside] if self.witness_is_sample else []
        masks = {field.word: (1 << WORD_BITS) - 1 - field.mask for field in own}
        return [{"name": column, "mask": masks.get(word)} for word, column in enumerate(self.word_columns)]

    @property
    def word_columns(self) -> tuple[Identifier, ...]:
        return tuple(word_column(w) for w in range(self.words))

    def field(self, name: str) -> Field:
        """The field of an attribute that the release shows, or of a person that it hides."""
        hidden = [] if self.person is None else [self.person]
        return next(f for f in (*self.fields, *hidden) if f.attribute.name == name)

    def judged_field(self, name: str) -> Field:
        """The field in which equal values have equal codes, and groups of the attribute's hierarchy are intervals."""
        return next((f for f in self.judged if f.attribute.name == name), self.field(name))


def encode(
    engine: Engine, plan: Plan, workspace: Workspace, row_filter: Expression | None = None, *, whole: bool | None = None
) -> CodedTable:
    """Code the source; must run inside `engine.transaction()` so that all statements see one snapshot.

    row_filter: a condition on rows `s` of the source; others are left out.
    whole: whether all rows are witnesses, however many there are; unless given, if they tell of persons whom the
        release hides.
    """
    if plan.pseudonyms:  # or identifiers would be kept as they are
        raise ValueError("Pseudonyms must be made before the source is coded.")
    plan = replace(plan, attributes=tuple(_limited(engine, plan, attribute) for attribute in plan.attributes))
    whole = plan.hidden_person is not None if whole is None else whole
    if row_filter is None:
        return _encode(engine, plan, workspace, _measure_source(engine, plan), whole=whole)
    part = copied(engine, plan, workspace, row_filter=row_filter)
    coded = _encode(engine, part, workspace, _measure_source(engine, part), whole=whole)
    workspace.drop(part.source)
    return coded


def encode_witness(engine: Engine, plan: Plan, workspace: Workspace, *, whole: bool) -> CodedTable:
    """Code the quasi-identifiers of the witness alone, for those who hold a release against its source.

    There are no coded rows but the witness, which is of all rows if `whole`, and no multiset. Kept values have no
    codes.
    """
    plan = replace(plan, attributes=tuple(_limited(engine, plan, attribute) for attribute in plan.attributes))
    measured = _measure_source(engine, plan)
    fields, words = place(
        [
            _code(engine, plan, workspace, measured, number, attribute)
            if attribute.role is Role.QUASI_IDENTIFIER
            else Coding(attribute, bits=0, leaves=0, origin=0)
            for number, attribute in enumerate(plan.attributes)
        ]
    )
    share = 1.0 if whole else sample_share(measured.rows)
    witness = workspace.table("witness")
    engine.execute(encode_statement(engine, plan, (fields, words), witness, raw=fields, share=share))
    engine.analyze(witness, columns=[word_column(word) for word in range(words)])
    return CodedTable(witness, witness, share, None, measured.rows, words, tuple(fields), (), measured.with_nulls)


def _limited(engine: Engine, plan: Plan, attribute: Attribute) -> Attribute:
    """The attribute with limits that are numbers."""
    specification = plan.policy.attributes[attribute.name]
    return replace(attribute, limits=limits_in(engine, plan.source, attribute.column, specification))


def _encode(
    engine: Engine, plan: Plan, workspace: Workspace, measured: _CountedSource, *, whole: bool = False
) -> CodedTable:
    rows = measured.rows
    kept = [_code(engine, plan, workspace, measured, n, a) for n, a in enumerate(plan.coded)]
    by_value = (code_by_value(engine, plan, workspace, len(kept) + n, coding) for n, coding in enumerate(kept))
    codings = [*kept, *(coding for coding in by_value if coding is not None)]
    engine.analyze(*(coding.dictionary for coding in codings if coding.dictionary is not None and not coding.is_aside))
    fields, words = place(codings)
    looked_at, judged = tuple(fields[: len(kept)]), tuple(fields[len(kept) :])
    each, person = looked_at[: len(plan.attributes)], next(iter(looked_at[len(plan.attributes) :]), None)
    share = 1.0 if whole else sample_share(rows)
    coded, witness = _code_rows(engine, plan, workspace, (fields, words), looked_at, share)
    multiset = _count_kept(engine, plan, workspace, each)
    population = _code_population(engine, plan, workspace, each, words)
    return CodedTable(
        coded, witness, share, multiset, rows, words, each, judged, measured.with_nulls, person, population
    )


def _code(
    engine: Engine, plan: Plan, workspace: Workspace, measured: _CountedSource, number: int, attribute: Attribute
) -> Coding:
    """The coding of one attribute; of nearly all different kept values, the number of the row."""
    coding = code_attribute(engine, plan, workspace, number, attribute, measured.ranges.get(attribute.name))
    rows = measured.rows
    return coding or Coding(attribute, rows.bit_length(), rows, dictionary=workspace.table("aside"), is_aside=True)


def _code_population(
    engine: Engine, plan: Plan, workspace: Workspace, fields: Sequence[Field], words: int
) -> Relation | None:
    """Code the quasi-identifiers of the population that models look at."""
    if plan.population is None:
        return None
    table, there = workspace.table("population"), replace(plan, source=plan.population)
    quasi = [field for field in fields if field.attribute.role is Role.QUASI_IDENTIFIER]
    for field in quasi:
        if field.coding.hierarchy is not None:
            require_one_meaning(engine, field.attribute.name, field.coding.hierarchy)
    engine.execute(encode_statement(engine, there, (quasi, words), table))
    engine.analyze(table)
    return table


def _code_rows(
    engine: Engine,
    plan: Plan,
    workspace: Workspace,
    packed: tuple[list[Field], int],
    fields: Sequence[Field],
    share: float,
) -> tuple[Relation, Relation]:
    """Create the coded rows and their witness, with the table of kept values that are not coded if there are any.

    packed: all fields, and the number of their words; fields: those whose values the witness has.
    share: of all rows, about, that are in the witness.
    """
    coded, witness = workspace.table("coded"), workspace.table("witness")
    columns = [word_column(word) for word in range(packed[1])]
    aside = [field for field in fields if field.coding.is_aside]
    engine.execute(encode_statement(engine, plan, packed, witness, raw=fields, share=share))
    encoded = witness
    if share < 1:
        encoded = workspace.table("encoded") if aside else coded
        engine.execute(encode_statement(engine, plan, packed, encoded, raw=aside))
    if encoded != coded:
        engine.run("encoding/copy_words", rows=coded, encoded=encoded, words=columns)
    if aside:
        _put_aside(engine, encoded, fields, aside)
    if encoded not in (coded, witness):
        workspace.drop(encoded)
    engine.analyze(coded, witness, columns=columns)
    return coded, witness


def _put_aside(engine: Engine, encoded: Relation, fields: Sequence[Field], aside: Sequence[Field]) -> None:
    """Create the table of kept values that are not coded, from coded rows that have them too."""
    table, code = aside[0].coding.dictionary, aside[0].short_code(Identifier("e"))
    assert table is not None
    columns = [{"name": field.value_column, "raw": raw_column(fields, field)} for field in aside]
    engine.run("encoding/create_aside", aside=table, encoded=encoded, code=code, columns=columns)
    engine.analyze(table)


def _count_kept(engine: Engine, plan: Plan, workspace: Workspace, fields: Sequence[Field]) -> Relation | None:
    """Count the rows that the release must still hold: by groups, unless equal values can differ or hardly repeat."""
    if not plan.kept:
        return None
    table = workspace.table("multiset")
    columns = [Identifier(attribute.name) for attribute in plan.kept]
    kept = [field for field in fields if field.attribute.role is not Role.QUASI_IDENTIFIER]
    groups = not any(field.attribute.column.kind.equals_may_differ or field.coding.is_aside for field in kept)
    count = free_name("n", [attribute.name for attribute in plan.kept])
    engine.run("encoding/count_kept", multiset=table, source=plan.source, columns=columns, count=count, groups=groups)
    return table


def _measure_source(engine: Engine, plan: Plan) -> _CountedSource:
    integers = [a.name for a in plan.coded if a.column.kind is Kind.INTEGER and a.hierarchy is None]
    policy = plan.policy
    refusing = {a.name for a in plan.coded if policy.attributes[a.name].nulls == "refuse" or _must_be_known(plan, a)}
    nullable = [a.name for a in plan.coded if a.role is Role.QUASI_IDENTIFIER or a.name in refusing]
    measured = measure_source(engine, plan.source, nullable, integers)
    if not measured.rows:
        raise ConflictError(f"{plan.source_name} was emptied after the run began.")
    with_nulls = frozenset(name for name, n in measured.nulls.items() if n)
    if with_nulls & refusing:
        raise ConflictError(f"{plan.source_name} got NULLs that the policy refuses after the run began.")
    limits = {attribute.name: attribute.limits for attribute in plan.coded}
    ranges = {
        name: Range(*map(limits[name].of_whole, ends)) if ends else Range(None, None)
        for name, ends in measured.ranges.items()
    }
    return _CountedSource(measured.rows, ranges | measure_fractions(engine, plan), with_nulls)


def _must_be_known(plan: Plan, attribute: Attribute) -> bool:
    """Tell whether the attribute says whose a row is, and a row of nobody known is refused."""
    return attribute.name == plan.policy.person and plan.policy.attributes[attribute.name].nulls != "each"
