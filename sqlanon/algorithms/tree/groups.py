"""The groups that a partition tree counts: they follow from the choice of its splits, and from the models.

LeFevre, DeWitt, TR 1590, section 2, has three kinds, all counted for every active node of a level at once:

- AV groups, `GROUP BY node, value` of each attribute: enough for medians, and for class sizes;
- AVC groups, `GROUP BY node, value, class`: for splits chosen by a target (of a numeric target the sums n, Σy stand for
  its values, which is all that the squared error needs);
- AVS groups, `GROUP BY node, value, sensitive value`: for models that look at a sensitive attribute.

So there are four cases: medians under k-anonymity (AV), medians under other models (AV, AVS), a target under
k-anonymity (AVC), a target under other models (AVC, AVS). As the nodes where no split gains enough are cut at medians,
trees with a target count AV groups too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlanon.encoding.coded_table import CodedTable
from sqlanon.encoding.fields import Field
from sqlanon.models.base import PrivacyModel
from sqlanon.policy import Algorithm


@dataclass(frozen=True)
class CountedGroups:
    """The attributes that have to be counted beside the values of the quasi-identifiers.

    target: the attribute of the AVC groups.
    sensitive: the attributes of the AVS groups, each once.
    """

    target: str | None
    sensitive: tuple[str, ...]

    @property
    def names(self) -> list[str]:
        """The kinds of groups, by the paper's names."""
        return ["AV", *(["AVC"] if self.target is not None else []), *(["AVS"] if self.sensitive else [])]

    def fields(self, coded: CodedTable) -> list[Field]:
        """All fields of a coded table that the tree looks at."""
        others = dict.fromkeys((*self.sensitive, *([] if self.target is None else [self.target])))
        return [*coded.quasi_identifiers, *(coded.judged_field(name) for name in others)]


def groups_of(algorithm: Algorithm, models: Sequence[PrivacyModel]) -> CountedGroups:
    """The groups that an algorithm counts under some models.

    Top-down specialization counts its target's classes once, over all rows, and full-domain generalization has none, so
    their distinct tuples need not hold it.
    """
    names = dict.fromkeys(model.attribute for model in models if model.attribute is not None)
    return CountedGroups(algorithm.counted_target, tuple(names))
