"""t-closeness: a class's distribution of a sensitive attribute is near the whole table's.

Source: N. Li, T. Li, S. Venkatasubramanian, ICDE 2007.

P is the distribution in a class, Q the one in the whole table; absent values count with probability 0, NULL is a value.
All five distances are convex in P, so merging classes that satisfy t gives one that does (the paper's generalization
property, section 4): monotone under generalization. They are not monotone under suppression: leaving rows out changes
Q itself, and with it the distance of classes that were kept.

Counts are compared as integers (n*M against N*m, not n/N against m/M), so the sums are exact and independent of order;
only the last division, and the logarithms of `kl`, are a double's. A class violates when its distance > t * (1 + 1e-9).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

from markupsafe import Markup

from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.models.base import Groups, PrivacyModel, Runs, SampleTest, relation
from sqlanon.models.costs import Costs, read_costs
from sqlanon.models.thresholds import (
    INFORMATION_SCALE,
    RELATIVE_TOLERANCE,
    RUNNING_TOLERANCE,
    integer_type,
    logarithm_scale,
    rounded_up,
    running_error,
)
from sqlanon.models.transport import TransportProblem, least_costs, require_solver
from sqlanon.policy import AttributeSection, ModelParameters
from sqlanon.policy.privacy import TClosenessParameters
from sqlanon.sql import Expression, Identifier, RedactedValue, Renderer, Statement, macro
from sqlanon.support.environment import named

MOST_SOLVED_AT_ONCE = 1000
"""Contents of classes that are listed for the solver by one statement."""


@dataclass(frozen=True)
class TCloseness(PrivacyModel):
    """The distance between every class's distribution of `attribute` and the table's is at most `t`."""

    name: ClassVar[str] = "t-closeness"
    distance: ClassVar[str]
    distance_in_words: ClassVar[str]
    judges_shares: ClassVar[bool] = True
    monotone_under_generalization: ClassVar[bool] = True
    monotone_under_suppression: ClassVar[bool] = False

    attribute: str
    t: float

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "distance": self.distance, "t": self.t}

    @property
    def greatest(self) -> float:
        """The distance from which on a class violates, tolerance included."""
        return self.t * (1 + RELATIVE_TOLERANCE)

    @classmethod
    def from_parameters(cls, parameters: ModelParameters, *, counts_null: bool) -> TCloseness:  # noqa: ARG003
        """Make the model of the distance that is asked for."""
        if isinstance(parameters, TClosenessParameters) and parameters.costs is not None:
            return GivenTCloseness(parameters.attribute, parameters.t, parameters.costs.csv)
        given = parameters.model_dump(exclude={"model"})
        return DISTANCES[given.pop("distance")](**given)

    @property
    def sentence(self) -> str:
        return (
            f"In every class “{self.attribute}” is distributed nearly as in the whole table: at a distance of "
            f"{self.t:g} at most ({self.distance_in_words})."
        )

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest:
        measure = self.measure(render, groups)
        values = {"classes": groups.classes, "measure": measure, "greatest": self.greatest}
        return SampleTest("models/test_closeness", values)

    @abstractmethod
    def measure(self, render: Renderer, groups: Groups) -> Statement: ...

    def min_suppressed(self) -> Expression:
        """Rows that must go for the rest R of a class P, as one, to come within t of the table's distribution Q.

        The distance is convex and at most 1, so with a share f of the rows gone d(P, Q) <= (1 - f) d(R, Q) + f. As
        d(R, Q) <= t: f >= (d(P, Q) - t) / (1 - t).
        """
        if self.greatest >= 1:
            return Markup(0)
        return macro("models.share_beyond", self.greatest)

    def _prefixes_of_groups(self, render: Renderer, runs: Runs, groups: Sequence[Expression]) -> Statement:
        """The running sum of |p - q| / 2 over groups of values, each of which is a column of the domain.

        A group with x rows in a class of n adds its surplus x - n*q from its last row on until n reaches x / q: two
        events for each row at most, whatever the size of the domain.
        """
        return render(
            "models/measure_prefixes_closeness",
            runs=runs.runs,
            domain=runs.domain,
            rows=runs.rows,
            groups=groups,
            integer=integer_type(render, len(groups) * runs.rows**2),
            falls=self.greatest * len(groups) * (1 + RUNNING_TOLERANCE),
            stands=self.greatest * len(groups) * (1 - RUNNING_TOLERANCE),
        )

    def worst_of(self, measures: tuple[float, float]) -> float:
        return max(measures)

    def is_met_by(self, worst: float, rows: int) -> bool:  # noqa: ARG002
        return worst <= self.greatest

    def attainable(self, measure: float) -> str:
        return f"t: {rounded_up(measure):g}"

    def _render(self, render: Renderer, template: str, groups: Groups, integer: Expression, **more: Any) -> Statement:
        return render(
            template,
            classes=groups.classes,
            avs=relation(groups.avs),
            domain=relation(groups.domain),
            rows=groups.total,
            greatest=self.greatest,
            integer=integer,
            **more,
        )


class EqualTCloseness(TCloseness):
    """Equal ground distance: the variational distance, half the sum of |p - q| over the whole domain."""

    distance: ClassVar[str] = "equal"
    distance_in_words: ClassVar[str] = "half the sum of the differences in frequency"

    def min_suppressed(self) -> Expression:
        """Let S be the values of which the class P has less than the table Q: d(P, Q) = Q(S) - P(S). The rest R has no
        more rows of S, and needs Q(S) - R(S) <= t: so it has at most n * P(S) / (Q(S) - t) rows."""
        return macro("models.lack_beyond", self.greatest)

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The distance of each class, from its present values alone: the absent ones sum to 1 - Q(present)."""
        return self._render(render, "models/measure_equal_closeness", groups, integer_type(render, groups.rows**2))

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running surplus of the values."""
        return self._prefixes_of_groups(render, runs, [Markup(Identifier("s"))])


class OrderedTCloseness(TCloseness):
    """Ordered ground distance |i - j| / (m - 1): the earth mover's distance is the sum of |cumulated p - q| / (m - 1).

    A domain of one value has distance 0. NULL stands where the domain's `position` puts it.
    """

    distance: ClassVar[str] = "ordered"
    distance_in_words: ClassVar[str] = "the earth mover's distance along the order of the values"

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:  # noqa: ARG002
        if column is not None and (column.kind.is_nominal or column.kind is Kind.OTHER):
            about = f"'{column.name}' is {column.type}"
            yield f"distance: ordered needs numbers, dates, times or an enum, and {about}; use distance: equal."

    def implies_violation(self) -> Expression:
        """A row more moves P by (row - P) / n, and no two rows are further apart than 1: so n * d(P, Q) changes by at
        most 1 with each row."""
        return macro("models.stays_beyond", self.greatest * (1 + RUNNING_TOLERANCE))

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The distance of each class, at the cost of its present values, not of the whole domain.

        Between two present values the cumulated P is constant and the cumulated Q rises: the sum of |P - Q| over that
        gap needs only prefix sums of Q at its ends and where Q crosses P. The ends tell in which gaps it does; these
        few crossings are found by one merge with the domain.
        """
        integer, cube = (integer_type(render, groups.rows**power) for power in (2, 3))
        return self._render(render, "models/measure_ordered_closeness", groups, integer, cube=cube)


class HierarchicalTCloseness(TCloseness):
    """Hierarchical ground distance, level(lowest common ancestor) / H, over the attribute's generalization hierarchy.

    The earth mover's distance is the sum over internal nodes N of height(N)/H * min(pos, neg), where pos and neg add
    up the surplus and the lack of p against q among N's children (section 5 of the paper). NULL stands alone under the
    root.
    """

    distance: ClassVar[str] = "hierarchical"
    distance_in_words: ClassVar[str] = "the earth mover's distance in the hierarchy of the values"
    needs_hierarchy: ClassVar[bool] = True

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:  # noqa: ARG002
        if column is not None and attribute is not None and attribute.hierarchy is None:
            yield f"distance: hierarchical needs a hierarchy at attributes.{column.name}."

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The distance of each class; one pass over the present values for each level of the hierarchy."""
        integer = integer_type(render, groups.rows**2)
        levels = [
            (level, Markup(Identifier("s" if level == 1 else f"g{level - 1}"))) for level in range(1, groups.height + 1)
        ]
        return self._render(
            render, "models/measure_hierarchical_closeness", groups, integer, levels=levels, height=groups.height
        )

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The ground distance is that of a tree with edges of 1 / (2H): each group below the root adds |p - q|."""
        levels = ["s", *(f"g{level}" for level in range(1, runs.height))]
        return self._prefixes_of_groups(render, runs, [Markup(Identifier(level)) for level in levels])


class KlTCloseness(TCloseness):
    """The Kullback-Leibler divergence: the sum of p * ln(p / q), in nats; values absent from a class add nothing."""

    distance: ClassVar[str] = "kl"
    distance_in_words: ClassVar[str] = "the Kullback-Leibler divergence"

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest:  # noqa: ARG002
        counts = {"avs": groups.avs, "classes": groups.classes, "domain": groups.domain, "rows": groups.rows}
        return SampleTest(
            "models/test_divergence",
            {**counts, "greatest": self.greatest, "scale": INFORMATION_SCALE},
        )

    def min_suppressed(self) -> Expression:
        """A row: the divergence has no upper bound."""
        return PrivacyModel.min_suppressed(self)

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The divergence of each class; logarithms are added as integers, so their order does not matter."""
        scale, integer = logarithm_scale(groups.rows), integer_type(render, groups.rows**2)
        return self._render(render, "models/measure_kl_closeness", groups, integer, scale=scale)

    def measure_prefixes(self, render: Renderer, runs: Runs) -> Statement:
        """The running sum of x * ln(x * M / m), m being the value's rows in the table of M; less ln(n) in the end."""
        error = 2 * running_error(runs.rows)
        return render(
            "models/measure_prefixes_kl_closeness",
            runs=runs.runs,
            domain=runs.domain,
            rows=runs.rows,
            falls=self.greatest + error,
            stands=self.greatest - error,
        )


@dataclass(frozen=True)
class GivenTCloseness(TCloseness):
    """The earth mover's distance by costs out of a file, of which the greatest counts as 1.

    Sums over the values of a class bound the distance from below and from above, in SQL. The transport problem itself
    is solved outside of the database, for what the classes hold that these bounds leave open (`list_open`, `solve`);
    until then such a class violates. The distance is convex in P whatever the costs are: the plans of two classes,
    together, are a plan of their union.

    file: of the costs. distances: those that were solved, by the counts of the table and of the class. is_exact:
        whether these include the worst one.
    """

    distance: ClassVar[str] = "csv"
    distance_in_words: ClassVar[str] = "the earth mover's distance by given costs"
    needs_solver: ClassVar[bool] = True

    file: str
    distances: Mapping[tuple[str, str], float] = field(default_factory=dict, compare=False, repr=False)
    is_exact: bool = field(default=False, compare=False, repr=False)

    @property
    def parameters(self) -> dict[str, Any]:
        return {"attribute": self.attribute, "distance": {"csv": self.file}, "t": self.t}

    @property
    def shown_parameters(self) -> dict[str, Any]:
        return self.parameters | {"distance": {"csv": named(self.file)}}

    @property
    def needs_texts(self) -> bool:
        return True

    @property
    def testable(self) -> bool:
        return False

    @property
    def costs(self) -> Costs:
        """The costs of the file; raises PolicyError where they can't be read."""
        return read_costs(self.file)

    def problems(self, column: Column | None, attribute: AttributeSection | None, rows: int | None) -> Iterator[str]:  # noqa: ARG002
        try:
            require_solver()
            _ = self.costs
        except SqlanonError as problem:
            yield str(problem)

    def known_values(self) -> tuple[str, ...] | None:
        try:
            return self.costs.values
        except PolicyError:
            return None  # `problems` says why

    def lacking_values(self, values: int) -> str:
        return (
            f"the file of costs '{named(self.file)}' lacks {values:,} of the values of '{self.attribute}'; give each"
            " pair of values a line."
        )

    def warnings(self) -> Iterator[str]:
        if dear := self.costs.dear_pairs:
            yield (
                f"in '{named(self.file)}' the costs of {dear:,} of the pairs are above those of a way over other"
                " values; the distance is still the least cost of a transport, but no metric, as a row moves once."
            )

    def measure(self, render: Renderer, groups: Groups) -> Statement:
        """The distance of each class, or a bound that decides as it does."""
        chosen = self._open(self.is_exact) if self.distances else macro("models.no_bounds")
        return self._bounded(render, "models/measure_costs_closeness", groups, chosen=chosen)

    def list_open(self, render: Renderer, groups: Groups, *, worst: bool = False) -> Statement:
        """The contents of classes that must be solved: the counts of the table, and those of the class."""
        return self._bounded(
            render,
            "models/list_open_costs",
            groups,
            chosen=self._open(worst),
            worst=worst,
            limit=MOST_SOLVED_AT_ONCE,
        )

    def solve(self, listed: Sequence[Sequence[Any]], *, worst: bool = False) -> GivenTCloseness:
        costs = self.costs
        problems = [TransportProblem(_counts(counts), _counts(whole)) for whole, counts in listed]
        totals = least_costs(costs.units, problems)
        solved = {
            (whole, counts): float(Fraction(total, costs.most * problem.parcels))
            for (whole, counts), problem, total in zip(listed, problems, totals, strict=True)
        }
        return replace(self, distances={**self.distances, **solved}, is_exact=worst or self.is_exact)

    def _open(self, worst: bool) -> Expression:
        return macro("models.open_worst" if worst else "models.open_bounds", self.greatest)

    def _bounded(self, render: Renderer, template: str, groups: Groups, **more: Any) -> Statement:
        costs = self.costs
        branches = costs.branches if costs.is_metric else ()
        places = [
            {
                "place": place,
                "text": RedactedValue(costs.values[place]) if place < len(costs.values) else None,
                "radius": max(row),
                "weights": [
                    *(costs.shortest[place][landmark] for landmark in costs.landmarks),
                    *(int(place in below) for _, below in branches),
                ],
            }
            for place, row in enumerate(costs.units)
        ]
        solved = [
            (RedactedValue(whole), RedactedValue(counts), distance)
            for (whole, counts), distance in self.distances.items()
        ]
        forms = [Identifier(f"f{number}") for number in range(len(costs.landmarks) + len(branches))]
        integer = integer_type(render, 2 * costs.most * groups.rows**2)
        return self._render(
            render,
            template,
            groups,
            integer,
            named=places,
            forms=forms,
            lower=forms[: len(costs.landmarks)],
            branches=[
                {"form": form, "cost": cost}
                for form, (cost, _) in zip(forms[len(costs.landmarks) :], branches, strict=True)
            ],
            most=costs.most,
            solved=solved,
            **more,
        )


def _counts(described: str) -> dict[int, int]:
    pairs = (pair.split(":") for pair in described.split(","))
    return {int(place): int(rows) for place, rows in pairs}


DISTANCES: dict[str, type[TCloseness]] = {
    kind.distance: kind for kind in (EqualTCloseness, OrderedTCloseness, HierarchicalTCloseness, KlTCloseness)
}
