"""Functional dependences among columns, from numbers of values and of pairs that were counted anyway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlanon.inquiries.profile.column_facts import ColumnFacts, Combination, Dependence

ROWS_A_VALUE = 10  # of a column with fewer, that each value goes with one value of another may be chance


def find_dependences(
    facts: Sequence[ColumnFacts], pairs: Sequence[Combination], towards: Sequence[Combination]
) -> tuple[Dependence, ...]:
    """List the functional dependences that pairs of columns show.

    A column determines another if there are as many pairs of their values as it has values. Numbers that are estimates
    tell nothing.

    pairs: in which either column may determine the other; towards: in which the first may determine the second.
    """
    known = {one.name: one for one in facts if one.exact}
    dependences = [*_among(known, pairs, both=True), *_among(known, towards, both=False)]
    return tuple(dependences)


def _among(known: dict[str, ColumnFacts], pairs: Sequence[Combination], *, both: bool) -> Iterator[Dependence]:
    for pair in pairs:
        if not pair.exact or not known.keys() >= set(pair.columns):
            continue
        first, second = (known[name] for name in pair.columns)
        forth, back = _determines(first, second, pair), _determines(second, first, pair)
        if forth:
            yield Dependence(first.name, second.name, mutual=back and both)
        elif back and both:
            yield Dependence(second.name, first.name, mutual=False)


def _determines(one: ColumnFacts, other: ColumnFacts, pair: Combination) -> bool:
    is_telling = one.groups * ROWS_A_VALUE <= one.rows and other.groups > 1
    return is_telling and pair.groups == one.groups
