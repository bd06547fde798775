"""Accounting of a differentially private run: every mechanism that it will use, and what each costs.

All of it follows from the policy and the declared domains. Costs add up (sequential composition), as exact fractions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sqlanon.errors import PolicyError
from sqlanon.mechanisms.charges import CHOICE, NOISE, Charge, likely_noise
from sqlanon.methods.differential_privacy.drawing.scoring import Score, distance_score, score_of
from sqlanon.methods.differential_privacy.plan import PrivatePlan
from sqlanon.methods.differential_privacy.policy import MOST_EMPTY_CELLS, DiffGen, Marginals, Mst
from sqlanon.methods.differential_privacy.public_domain import NumberDomain

_MOST_SCALE = 2**50  # times any weight of a choice, and added to any count, it is a whole number of 64 bits


@dataclass(frozen=True)
class Schedule:
    """The shares of a run's epsilon: so many choices at `choice` each, and noisy counts at `counts`.

    factor: the least noise of a choice is so many times its sensitivity over its share.
    columns: the shares of the noisy counts of single columns, before the choices.
    marginals: the shares of noisy marginals, in place of one at `counts`, which is the least of all.
    """

    choices: int
    choice: Fraction
    counts: Fraction
    contribution: int
    score: Score | None = None
    factor: int = 1
    marginals: tuple[Fraction, ...] = ()
    columns: tuple[Fraction, ...] = ()

    @property
    def charges(self) -> list[Charge]:
        """List the mechanisms, in the order in which they are used."""
        charged = []
        if self.score is not None and self.choices:
            scale = self.factor * self.score.sensitivity / self.choice
            charged = [Charge(CHOICE, self.choice, self.score.sensitivity, scale)] * self.choices
        before = [self._noise(share) for share in self.columns]
        shares = self.marginals or (() if self.columns else (self.counts,))
        return [*before, *charged, *map(self._noise, shares)]

    def _noise(self, share: Fraction) -> Charge:
        return Charge(NOISE, share, self.contribution, self.contribution / share)

    @property
    def counts_marginals(self) -> bool:
        """Tell whether noise is added to marginals, in place of cells."""
        return bool(self.marginals or self.columns)

    def threshold(self, plan: PrivatePlan, cells: int) -> int | None:
        """Return the least noisy count that is released of so many cells; None where all are."""
        wanted = plan.algorithm.least_released
        if wanted != "auto":
            return wanted
        scale = float(self.contribution / self.counts)
        return max(1, math.ceil(scale * (math.log(cells) - math.log1p(math.exp(-1 / scale)))))

    def most_cells(self, plan: PrivatePlan) -> int:
        """Return how many cells a release may be made of, so that no more empty ones are in it than is allowed."""
        threshold, allowed = plan.algorithm.least_released, plan.algorithm.cells
        if threshold is None:
            return allowed
        if threshold == "auto":
            return MOST_EMPTY_CELLS
        scale = float(self.contribution / self.counts)
        exponent = math.log(allowed) + threshold / scale + math.log1p(math.exp(-1 / scale))
        return MOST_EMPTY_CELLS if exponent > math.log(MOST_EMPTY_CELLS) else int(math.exp(exponent))

    @property
    def likely_noise(self) -> int:
        """Return the noise that a count does not exceed in 95 of 100 cases."""
        return likely_noise(self.contribution, self.counts)


def schedule_of(plan: PrivatePlan) -> Schedule:
    """Divide the epsilon of a plan.

    Raises PolicyError where it is so small that numbers of 64 bits do not hold the noise: a draw that failed for this,
    or for a score that is too low, would tell of the data.
    """
    schedule = _divided(plan)
    widest = max(schedule.charges, key=lambda charge: charge.scale)
    if widest.scale > _MOST_SCALE:
        raise PolicyError(
            f"privacy: epsilon {float(plan.epsilon):g} is too small: the scale of a {widest.mechanism} would be"
            f" {float(widest.scale):.2g}, and may be {float(_MOST_SCALE):.2g} at most."
        )
    return schedule


def _divided(plan: PrivatePlan) -> Schedule:
    """Divide the epsilon of a plan: all of it for counts where nothing is chosen, or else half and half.

    Marginals have their shares of it; those of a spanning tree a third, as have columns and choices.

    The published variant (section 3.4 of the paper) pays for a cut of each attribute of numbers at first, and for two
    choices a round: a group, and a cut of each of its parts, which share no row. A person with several rows can be in
    both parts: unless the score is per row, each pays for its cut. The joint variant pays for one choice a round.
    """
    algorithm = plan.algorithm
    if isinstance(algorithm, Marginals):
        weights = algorithm.shares or (1,) * len(algorithm.marginals)
        shares = tuple(plan.epsilon * weight / sum(weights) for weight in weights)
        return Schedule(0, Fraction(0), min(shares), plan.contribution, marginals=shares)
    if isinstance(algorithm, Mst):
        return _tree(plan, len(plan.shown))
    if not isinstance(algorithm, DiffGen) or not algorithm.specializations:
        return Schedule(0, Fraction(0), plan.epsilon, plan.contribution)
    numbers = sum(isinstance(domain, NumberDomain) for domain in plan.domains.values())
    rounds = algorithm.specializations
    score = score_of(algorithm.score, plan.classes, plan.contribution)
    cuts = 1 if plan.contribution == 1 or score.is_per_row else 2
    choices = rounds if algorithm.variant == "joint" else numbers + (1 + cuts) * rounds
    factor = 1 if algorithm.variant == "joint" and score.is_monotone else 2
    half = plan.epsilon / 2
    return Schedule(choices, half / choices, half, plan.contribution, score, factor)


def _tree(plan: PrivatePlan, columns: int) -> Schedule:
    """Divide the epsilon of a spanning tree of columns: a third each for columns, choices and pairs."""
    if columns == 1:
        return Schedule(0, Fraction(0), plan.epsilon, plan.contribution, columns=(plan.epsilon,))
    third, pairs = plan.epsilon / 3, columns - 1
    return Schedule(
        pairs,
        third / pairs,
        third / columns,
        plan.contribution,
        distance_score(plan.contribution),
        factor=2,
        marginals=(third / pairs,) * pairs,
        columns=(third / columns,) * columns,
    )
