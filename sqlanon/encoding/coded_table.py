"""One snapshot of the source, coded: what every search works on.

Each attribute's values become order-preserving integers, packed into few BIGINT words (DESIGN: "Encoding"; the star
schema of Incognito, SIGMOD 2005, section 3). All of it happens in one transaction, so a source that changes is seen as
of one moment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from markupsafe import Markup

from sqlanon.encoding.coded_rows import encode_statement
from sqlanon.encoding.dictionaries import code_attribute, code_by_value
from sqlanon.encoding.fields import Field, place, word_column
from sqlanon.encoding.fractions import Range, measure_fractions
from sqlanon.engines.base import Engine, Kind
from sqlanon.errors import ConflictError
from sqlanon.limits import limits_in
from sqlanon.measuring import measure_source
from sqlanon.plan import Attribute, Plan
from sqlanon.policy import Role
from sqlanon.sql import Identifier, Relation, free_name
from sqlanon.work.workspace import Workspace

WITNESS_ROWS = 1_000_000  # up to so many rows, all of them witness the recoding
WITNESS_SAMPLE = 100_000  # expected size of the random sample above


@dataclass(frozen=True)
class _Source:
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
    with_nulls: the names of the quasi-identifiers that are NULL somewhere.
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
    def word_columns(self) -> tuple[Identifier, ...]:
        return tuple(word_column(w) for w in range(self.words))

    def field(self, name: str) -> Field:
        return next(f for f in self.fields if f.attribute.name == name)

    def judged_field(self, name: str) -> Field:
        """The field in which equal values have equal codes, and groups of the attribute's hierarchy are intervals."""
        return next((f for f in self.judged if f.attribute.name == name), self.field(name))


def encode(
    engine: Engine, plan: Plan, workspace: Workspace, fitting: Markup | None = None, *, whole: bool = False
) -> CodedTable:
    """Code the source; must run inside `engine.transaction()` so that all statements see one snapshot.

    fitting: a condition on rows `s` of the source; others are left out.
    whole: whether all rows are witnesses, however many there are.
    """
    plan = replace(plan, attributes=tuple(_limited(engine, plan, attribute) for attribute in plan.attributes))
    if fitting is None:
        return _encode(engine, plan, workspace, _measure(engine, plan), whole=whole)
    copy = workspace.table("source")
    columns = [Identifier(attribute.name) for attribute in plan.attributes]
    engine.run("encoding/copy_source", copy=copy, source=plan.source, columns=columns, fitting=fitting)
    engine.analyze(copy)
    copied = replace(plan, source=copy)
    coded = _encode(engine, copied, workspace, _measure(engine, copied))
    workspace.drop(copy)
    return coded


def _limited(engine: Engine, plan: Plan, attribute: Attribute) -> Attribute:
    """The attribute with limits that are numbers."""
    said = plan.policy.attributes[attribute.name]
    return replace(attribute, limits=limits_in(engine, plan.source, attribute.column, said))


def _encode(engine: Engine, plan: Plan, workspace: Workspace, measured: _Source, *, whole: bool = False) -> CodedTable:
    rows, ranges = measured.rows, measured.ranges
    kept = [code_attribute(engine, plan, workspace, n, a, ranges.get(a.name)) for n, a in enumerate(plan.attributes)]
    by_value = (code_by_value(engine, plan, workspace, len(kept) + n, coding) for n, coding in enumerate(kept))
    codings = [*kept, *(coding for coding in by_value if coding is not None)]
    engine.analyze(*(coding.dictionary for coding in codings if coding.dictionary is not None))
    fields, words = place(codings)
    coded, witness = workspace.table("coded"), workspace.table("witness")
    share = min(1.0, WITNESS_SAMPLE / rows) if rows > WITNESS_ROWS and not whole else 1.0
    engine.execute(encode_statement(engine, plan, (fields, words), witness, raw=True, share=share))
    columns = [word_column(word) for word in range(words)]
    if share < 1:
        engine.execute(encode_statement(engine, plan, (fields, words), coded))
    else:
        engine.run("encoding/copy_words", rows=coded, witness=witness, words=columns)
    engine.analyze(coded, witness, columns=columns)
    multiset = _count_kept(engine, plan, workspace)
    each, judged = tuple(fields[: len(kept)]), tuple(fields[len(kept) :])
    return CodedTable(coded, witness, share, multiset, rows, words, each, judged, measured.with_nulls)


def _count_kept(engine: Engine, plan: Plan, workspace: Workspace) -> Relation | None:
    """What the release must still hold; rows are not grouped where equal values can look different."""
    if not plan.kept:
        return None
    table = workspace.table("multiset")
    columns = [Identifier(attribute.name) for attribute in plan.kept]
    groups = not any(attribute.column.kind.looks_different for attribute in plan.kept)
    count = free_name("n", [attribute.name for attribute in plan.kept])
    engine.run("encoding/count_kept", multiset=table, source=plan.source, columns=columns, count=count, groups=groups)
    return table


def _measure(engine: Engine, plan: Plan) -> _Source:
    integers = [a.name for a in plan.attributes if a.column.kind is Kind.INTEGER and a.hierarchy is None]
    refusing = {a.name for a in plan.attributes if plan.policy.attributes[a.name].nulls == "refuse"}
    nullable = [a.name for a in plan.attributes if a.role is Role.QUASI_IDENTIFIER or a.name in refusing]
    measured = measure_source(engine, plan.source, nullable, integers)
    if not measured.rows:
        raise ConflictError(f"{plan.source_name} was emptied after the run began.")
    with_nulls = frozenset(name for name, n in measured.nulls.items() if n)
    if with_nulls & refusing:
        raise ConflictError(f"{plan.source_name} got NULLs that the policy refuses after the run began.")
    limits = {attribute.name: attribute.limits for attribute in plan.attributes}
    ranges = {
        name: Range(*map(limits[name].of_whole, ends)) if ends else Range(None, None)
        for name, ends in measured.ranges.items()
    }
    return _Source(measured.rows, ranges | measure_fractions(engine, plan), with_nulls)
