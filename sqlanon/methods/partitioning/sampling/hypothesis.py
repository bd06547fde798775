"""Judging splits on a sample: a split stands if all its children satisfy the models in the whole node, with confidence.

Source: LeFevre, DeWitt, TR 1590, section 3.1. A node of N rows is known by a simple random sample of n. For each child
and model the hypothesis that the child violates the model is tested, and the split stands if all are rejected; the
level of m tests is alpha / m each (Bonferroni). Recursive (c,l)-diversity and variance diversity are tested as in the
paper, and k-anonymity as there but for two terms, without which the normal approximation is too bold where few sampled
rows decide; distinct values that the sample shows are certain; for entropy l-diversity and t-closeness the bound of a
one-sided confidence interval is compared. All deviations carry the finite population correction
(N - n) / (N - 1), so that with n = N the definitions themselves would remain. docs/sampling.md has the formulas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from sqlanon.algorithms.tree.allowable import ModelsOfChildren
from sqlanon.algorithms.tree.task import Branch, Task
from sqlanon.models import Groups, PrivacyModel
from sqlanon.sql import Relation, Statement


@dataclass(frozen=True)
class Confidence:
    """The confidence that a split on a sample must reach.

    alpha: the level of the tests of a split together; None takes the sample for the whole (the paper's naive check).
    """

    alpha: float | None

    def quantile(self, tests: int) -> float:
        """The standard normal quantile that each of so many tests must reach."""
        return 0.0 if self.alpha is None else NormalDist().inv_cdf(1 - self.alpha / tests)

    def least_sampled(self, k: int, sample: int, population: int, tests: int) -> int:
        """The fewest sampled rows of a child that is to have `k` rows, as `create_min_counts` has it."""
        z, share = self.quantile(tests), (k if self.alpha is None else k - 1) / population
        correction = max(0, population - sample) / max(1, population - 1)
        deviation = math.sqrt(max(0.0, sample * share * (1 - share) * correction))
        skew = (z * z - 1) / 6 * (1 - 2 * share) * max(1 - 2 * sample / population, 0) + 0.5
        surplus = z * deviation + (0 if self.alpha is None else skew)
        return max(1, min(k, math.ceil(sample * share + surplus - 1e-9)))

    def quantiles(self, children: int, models: int) -> list[dict[str, float]]:
        """The quantiles of splits into up to so many children, in steps of powers of two, each tested as its last."""
        steps = [1 << bits for bits in range(1, max(2, children - 1).bit_length() + 1)]
        return [{"few": most // 2 + 1, "most": most, "z": self.quantile(most * models)} for most in steps]


class Hypotheses(ModelsOfChildren):
    """Judges the splits of nodes whose rows are a sample.

    min_counts: of the nodes that were sampled, what their children must have in the sample, `(root, few, most, z, …)`.
    parents: which of them a split of the frontier belongs to, `(number, root, …)`.
    """

    def __init__(self, confidence: Confidence, min_counts: Relation, parents: Relation) -> None:
        self.confidence = confidence
        self.tables = {"min_counts": min_counts, "parents": parents}

    def sizes_in_place(self, task: Task) -> bool:  # noqa: ARG002 - tests need quantiles, whatever the models
        return False

    def size(self, branch: Branch, values: dict[str, Any], fewest: int) -> None:  # noqa: ARG002 - `min_counts` say it
        branch.decide(
            "methods/partitioning/sampling/decide/size_candidate_splits", bits=branch.task.bits, **self.tables, **values
        )

    def measure(self, branch: Branch, model: PrivacyModel, groups: Groups) -> Statement:
        render = branch.engine.render
        test = None if self.confidence.alpha is None else model.sample_test(render, groups)
        if test is None:
            return model.measure(render, groups)
        return render(
            test.template, candidate_splits=branch.table("candidate_splits"), bits=branch.task.bits, **test.values
        )
