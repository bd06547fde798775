"""Population uniqueness: few members of the population, of which the release is a sample, are alone in their class.

A row that is alone in the release need not be alone in the population, and only who is alone there can be picked surely
by somebody who does not know who is in the release. How many are is estimated from the sizes of the classes (see
`uniqueness.estimating`), as in ARX.

The release is taken for a random sample with a fraction that the policy gives. Where classes are left out, it is one of
the members whose labels are still shown, so the fraction stays.

Estimates follow no rule of merging: merging two classes of one row leaves no unique, and may change the shape of the
sizes so that more is estimated of the others. So nothing is concluded from one generalization to another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from sqlanon.models.table_model import Sizes, SmallestClasses, TableModel
from sqlanon.models.thresholds import rounded_up


@dataclass(frozen=True)
class PopulationUniques(TableModel):
    """An estimate of the share of the population that is alone in its class is at most `share`.

    sample_of: the fraction of the population that the rows are.
    estimator: the estimate that is compared; `dankar` is the one that the rule of Dankar et al. trusts. A model that
        can't be fitted to the sizes tells nothing, and nothing is taken for satisfied by it.
    """

    name: ClassVar[str] = "population-uniqueness"
    monotone_under_generalization: ClassVar[bool] = False
    monotone_under_suppression: ClassVar[bool] = False

    share: float
    sample_of: float
    estimator: Literal["dankar", "zayatz", "pitman", "snb"] = "dankar"
    attribute: str | None = field(default=None, init=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"share": self.share, "sample_of": self.sample_of, "estimator": self.estimator}

    @property
    def sentence(self) -> str:
        return (
            f"At most {100 * self.share:.6g}% of the population are estimated to be alone with what their class shows,"
            f" if the rows are a random sample of {100 * self.sample_of:.6g}% of it."
        )

    def figure(self, sizes: Sizes) -> float:
        """The estimated share; infinite where the model can't be fitted."""
        from sqlanon.models.uniqueness.estimating import SampleEstimates  # here, as numpy is slow to load

        share: float | None = getattr(SampleEstimates(sorted(sizes.items()), self.sample_of), self.estimator).share
        return math.inf if share is None else share

    def is_satisfied_by(self, sizes: Sizes) -> bool:
        return not sizes or self.figure(sizes) <= self.share

    def leave_out(self, sizes: Sizes) -> SmallestClasses:
        """As few classes of one row as halving finds; without any, nobody in the sample is alone in the population.

        Where the population is no larger than the sample its uniques are known, not estimated.
        """
        if self.is_satisfied_by(sizes):
            return SmallestClasses()
        enough, too_few = sizes.get(1, 0), 0
        while enough - too_few > 1:
            middle = (enough + too_few) // 2
            if self.is_satisfied_by(SmallestClasses(1, middle).taken_from(sizes)):
                enough = middle
            else:
                too_few = middle
        return SmallestClasses(1, enough)

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst <= self.share

    def attainable(self, measure: float) -> str:
        return f"share: {rounded_up(measure):g}" if math.isfinite(measure) else "no share: no model can be fitted"
