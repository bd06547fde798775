"""The groups of all quasi-identifiers at all levels, in one table: what suppressed rows are looked up in.

A score that has to know in which groups the suppressed rows lie asks for all attributes in one join, where one for each
of them would cost more to plan than to carry out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlanon.encoding.frequency.frequency_sets import FrequencySets
from sqlanon.encoding.frequency.marginals import Marginal
from sqlanon.sql import Identifier, Relation, macro


@dataclass(frozen=True)
class AttributePart:
    """An attribute at a level below `*`; `sign` is for the statement that looks it up."""

    marginal: Marginal
    level: int
    sign: int = 1


@dataclass(frozen=True)
class GroupLookup:
    """The groups of the table that some frequency sets count."""

    sets: FrequencySets

    def looked_up(self, parts: Iterable[AttributePart], words: Sequence[Identifier]) -> dict[str, Any]:
        """Build the values of the template `rows_by_group`; `words` are those of the key that its rows have."""
        rows = []
        for part in parts:
            masks = dict(part.marginal.words(part.level))
            kept = (masks.get(word, 0) for word in words)
            rows.append((part.marginal.dimension.number, part.level, part.sign, *kept))
        named = [{"name": word, "mask": Identifier(f"m{place}")} for place, word in enumerate(words)]
        return {"groups": self.table, "parts": rows, "words": named}

    @cached_property
    def table(self) -> Relation:
        """Work table `(number, level, k0, k1, …, n, leaves)`."""
        sets = self.sets
        table = sets.workspace.table("groups")
        sets.workspace.drop(table)  # that of another part of the table
        levels = ((marginal, level) for marginal in sets.marginals for level in range(marginal.dimension.height))
        parts = [_counted(marginal, level, sets.keys.columns) for marginal, level in levels]
        sets.engine.run("methods/generalization/lattice/create_groups", groups=table, parts=parts)
        sets.engine.analyze(table)
        return table


def _counted(marginal: Marginal, level: int, words: Sequence[Identifier]) -> dict[str, Any]:
    """Build the template's values to count the groups of one attribute at one level."""
    keys = {word: macro("bits.masked", word, mask) for word, mask in marginal.words(level)}
    return {
        "number": marginal.dimension.number,
        "level": level,
        "marginal": marginal.table,
        "covered": Identifier(f"n{level}") if level else 1,
        "words": [{"name": word, "value": keys.get(word) or macro("bits.united", [])} for word in words],
        "keys": list(keys.values()),
    }
