"""Votes of the rows of a group on the bits of their codes, which tell whether most rows may have one value.

Where a share of the rows has one code, each bit of it is that of as large a share, or a larger one. So few groups are
left that have to be counted by their codes too, and where a rule needs more than half of the rows, that is all there is
to its right side (after the majority vote of R. S. Boyer, J S. Moore, MJRTY, 1981, bit by bit).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlanon.encoding.fields import WORD_BITS, Field
from sqlanon.engines.base import Engine
from sqlanon.inquiries.risk.coded_columns import CodedColumns
from sqlanon.sql import Relation
from sqlanon.work.workspace import Workspace


@dataclass(frozen=True)
class VotedTuples:
    """Distinct tuples with the votes on the code of a column: work table `(number, p0, …, w, votes)`.

    right: the column. bits: on how many of the code's bits there are votes. width: the bits of a count of votes.
    """

    relation: Relation
    right: Field
    bits: int
    width: int

    @property
    def shifts(self) -> list[int]:
        """The places at which the votes on each bit begin."""
        return [self.width * bit for bit in range(self.bits)]

    @property
    def ones(self) -> int:
        """The mask of the votes on one bit."""
        return (1 << self.width) - 1


def vote(engine: Engine, workspace: Workspace, coded: CodedColumns, right: Field) -> VotedTuples:
    """Make the tuples with their votes on as many bits of a column's code as one number has room for."""
    width = max(1, coded.row_count.bit_length())
    bits = min(WORD_BITS // width, right.coding.bits)
    voted = VotedTuples(workspace.table("voted", right.number), right, bits, width)
    engine.run(
        "inquiries/risk/create_votes",
        voted=voted.relation,
        tuples=coded.tuples,
        words=coded.word_columns,
        word=right.column,
        bits=[right.shift + bit for bit in range(bits)],
        width=width,
    )
    engine.analyze(voted.relation)
    return voted
