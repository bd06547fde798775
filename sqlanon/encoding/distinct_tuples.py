"""Distinct tuples with counts in place of rows, where that shrinks the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.sql import Expression, Identifier, Relation, macro
from sqlanon.work.workspace import Workspace

WORTH_SHARE = 0.35  # distinct tuples per row at which grouping them pays for itself
OFTEN_READ_SHARE = 0.7  # the same where a search reads them for every candidate
SAMPLE_ROWS = 100_000
WEIGHT = Identifier("w")
"""The column of frequency sets that counts rows."""


@dataclass(frozen=True)
class Persons:
    """The bits by which coded rows tell persons apart: none of them set is another person in each row.

    most: no person has more of the tuples that these are kept in.
    """

    word: Identifier
    mask: int
    most: int

    @property
    def code(self) -> Expression:
        """The code of a row's person."""
        return macro("bits.masked", self.word, self.mask)


@dataclass(frozen=True)
class Tuples:
    """The frequency set of the bits that the search looks at: `(p0, p1, …, w)`, and which bits those are.

    persons: how many persons there are, where `w` counts them; None where it counts rows.
    weights: where it counts persons, the columns for those who have the value of each sensitive attribute: the tuples
        with it have no `w`, and those of quasi-identifiers alone, which the masks tell, have no other count.
    several: where persons may be in several classes, how the tuples, each of one person, tell which: so their counts do
        not add up.
    changing: how many persons these are, who have rows that differ in quasi-identifiers.
    most: no person has more rows; 1 where rows are counted.
    """

    table: Relation
    masks: tuple[int, ...]
    persons: int | None = None
    weights: Mapping[str, Identifier] = field(default_factory=dict)
    several: Persons | None = None
    changing: int = 0
    most: int = 1


def collapse(
    engine: Engine, workspace: Workspace, coded: CodedTable, fields: Sequence[Field], worth: float = WORTH_SHARE
) -> Tuples | None:
    """The frequency set of some fields of a table, or None where it would have more tuples per row than is worth it."""
    if sample_tuples(engine, coded, fields).distinct_share > worth:
        return None
    return count_tuples(engine, workspace, coded, fields)


def count_tuples(engine: Engine, workspace: Workspace, coded: CodedTable, fields: Sequence[Field]) -> Tuples:
    """The frequency set of some fields of a table, however large it is."""
    masks, words = masked_words(coded, fields)
    table = workspace.table("tuples")
    engine.run("encoding/create_frequency_set", table=table, rows=coded.rows, words=words)
    return Tuples(table, masks)


@dataclass(frozen=True)
class SampledTuples:
    """A random sample of the rows: how many, their distinct tuples, and how many of these it holds once and twice.

    share: of all rows, about, that are in the sample.
    """

    share: float
    rows: int
    distinct: int
    once: int
    twice: int

    @property
    def distinct_share(self) -> float:
        """The estimated number of distinct tuples of all rows, as a share of these (Chao, 1984)."""
        if self.share == 1.0:  # all rows were looked at
            return self.distinct / max(1, self.rows)
        return (self.distinct + self.once**2 / (2 * max(1, self.twice))) * self.share / max(1, self.rows)


def sample_tuples(engine: Engine, coded: CodedTable, fields: Sequence[Field]) -> SampledTuples:
    """Look at the tuples of some fields in a sample of the rows: that of the witnesses, where they are one."""
    _, words = masked_words(coded, fields)
    share = min(1.0, SAMPLE_ROWS / coded.source_rows)
    rows, drawn = coded.rows, share
    if coded.witness_is_sample:
        rows, share, drawn = coded.witness, coded.witness_share, 1.0
    return SampledTuples(share, *engine.query_one("encoding/sample_tuples", rows=rows, words=words, share=drawn))


def masked_words(coded: CodedTable, fields: Sequence[Field]) -> tuple[tuple[int, ...], list[dict[str, Any]]]:
    """The bits of some fields in each word, and the words with only those."""
    masks = tuple(sum(f.mask for f in fields if f.word == w) for w in range(coded.words))
    masked = zip(coded.word_columns, masks, strict=True)
    return masks, [{"name": column, "value": macro("bits.masked", column, mask)} for column, mask in masked]


@dataclass(frozen=True)
class TupleLeaves:
    """The leaves of distinct tuples, `(leaf, p0, p1, …)`, whose words have the bits of `masks` alone.

    expanded: every row's words with the leaf of its tuple.
    """

    leaves: Relation | Expression
    masks: tuple[int, ...]
    expanded: Expression


def expand(coded: CodedTable, tuples: Tuples, done: Relation | Expression) -> Expression:
    """Every row's words with the leaf of its tuple."""
    return leaves_of(coded, tuples, done).expanded


def leaves_of(coded: CodedTable, tuples: Tuples, done: Relation | Expression) -> TupleLeaves:
    """The leaves of the tuples, and of every row."""
    words = list(zip(coded.word_columns, tuples.masks, strict=True))
    if tuples.several is not None:
        done = macro("tree.leaves_of_tuples", done, words)
    elif tuples.persons is not None:
        done = macro("tree.counted", done, Identifier("w"))
    return TupleLeaves(done, tuples.masks, macro("relations.with_leaves", coded.rows, done, words))
