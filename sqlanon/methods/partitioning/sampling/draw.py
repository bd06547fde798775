"""Simple random samples without replacement, drawn in the database: the same rows and seed give the same sample.

A row's ticket is a hash of what is in it, in integer arithmetic that is alike on every engine, so neither the engine
nor the order of rows nor the number of threads matters. Rows with low tickets are candidates; equal rows are numbered,
and the candidates with the lowest second tickets (a hash of ticket and number) are the sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.algorithms.tree.task import Branch
from sqlanon.encoding.axes import carried
from sqlanon.sql import Expression, Identifier, Relation, macro

SURPLUS = 2.0  # candidates per row of a sample: equal rows have one ticket, so that few candidates would cluster
_BITS = 31
_LAST = (1 << _BITS) - 1
_MULTIPLIERS = (1640531527, 1274126177, 668265263, 1597334677, 741103597, 1540483477, 2091639127, 1103515245)
_FINISH = (0x2C1B3C6D, 0x297A2D39, 0x1656667B)


@dataclass(frozen=True)
class Draw:
    """A draw of `size` rows of each of the nodes `(root, population, …)`, from the rows `(node, p0, …[, w])`."""

    nodes: Relation | Expression
    rows: Relation | Expression
    size: int
    seed: str


def draw(branch: Branch, what: Draw, *, weighted: bool) -> tuple[Relation, Relation, int]:
    """The sampled nodes `(root, population, …)`, their samples `(node, p0, …)`, and how often the rows were read."""
    roots, drawn, table = (branch.table(name) for name in ("roots", "drawn", "sample"))
    words = tuple(column for column in branch.task.word_columns if column != Identifier("w"))
    factor, scans = SURPLUS, 0
    short = 1
    while short:
        branch.workspace.drop(roots, drawn)
        _draw_candidates(branch, what, (roots, drawn), words, factor, weighted=weighted)
        scans, factor = scans + 1, 4 * factor
        counted = {"roots": roots, "drawn": drawn, "sample": what.size}
        (short,) = branch.engine.query_one("methods/partitioning/sampling/scan/count_short", **counted)
    pieces = [macro("sampling.ticket"), macro("sampling.copy", _LAST)]
    branch.scan(
        "methods/partitioning/sampling/scan/take_sample",
        table=table,
        drawn=drawn,
        words=carried("s", words),
        order=carried("c", words),
        ticket=_hash(branch, f"second {what.seed}", pieces),
        bits=branch.task.bits,
        sample=what.size,
    )
    branch.workspace.drop(drawn)
    branch.engine.analyze(table, roots)
    return roots, table, scans


def _draw_candidates(
    branch: Branch,
    what: Draw,
    tables: tuple[Relation, Relation],
    words: Sequence[Identifier],
    factor: float,
    *,
    weighted: bool,
) -> None:
    roots, drawn = tables
    size = what.size
    branch.decide(
        "methods/partitioning/sampling/decide/create_roots", roots=roots, nodes=what.nodes, sample=size, factor=factor
    )
    pieces = [piece for word in words for piece in _pieces(word)]
    if weighted:
        pieces.append(macro("sampling.copy", _LAST))
    branch.scan(
        "methods/partitioning/sampling/scan/draw_copies"
        if weighted
        else "methods/partitioning/sampling/scan/draw_candidates",
        drawn=drawn,
        rows=what.rows,
        roots=roots,
        words=carried("c", words),
        ticket=_hash(branch, what.seed, pieces),
    )


def _pieces(word: Identifier) -> tuple[Expression, Expression]:
    """The upper and the lower half of a word."""
    return macro("sampling.upper_half", word, _BITS), macro("sampling.lower_half", word, _LAST)


def _hash(branch: Branch, seed: str, pieces: Sequence[Expression]) -> Expression:
    """31 bits that depend on the seed and on all pieces of 31 bits; no product overflows a BIGINT."""
    start = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:8], "big") & _LAST
    state = macro("sampling.start", start)
    finish = [Markup(str(constant)) for constant in _FINISH]
    for number, piece in enumerate([*pieces, *finish]):
        mixed = branch.engine.render.macro("xor", state, piece)
        multiplier = _MULTIPLIERS[number % len(_MULTIPLIERS)]
        state = macro("sampling.multiplied", mixed, multiplier, _LAST)
    return state
