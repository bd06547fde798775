"""Labels that stand for different values at different levels: whoever reads one can't tell which values are meant."""

from __future__ import annotations

import itertools

from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.table import HierarchyTable
from sqlanon.policy.document import path_text
from sqlanon.sql import Identifier


def require_one_meaning(engine: Engine, name: str, hierarchy: HierarchyTable) -> None:
    """Raise PolicyError where a label of a column's hierarchy stands for different values at two levels.

    Rows of a population are counted by the labels that a release shows, which do not say of which level they are.
    """
    labels = [Identifier(f"l{level}") for level in range(hierarchy.height + 1)]
    pairs = list(itertools.combinations(labels, 2))
    (values,) = engine.query_one("hierarchies/count_ambiguous", hierarchy=hierarchy.table, pairs=pairs)
    if values:
        raise PolicyError(
            f"{path_text(('attributes', name))}: a label of its hierarchy stands for other values at one level than at"
            f" another ({values:,} values have such a label), so that nobody can tell how many of a population it is"
            " about; give each group a name that no value and no other group has."
        )
