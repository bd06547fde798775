"""t-closeness: a class's distribution of a sensitive attribute is near the whole table's.

Source: N. Li, T. Li, S. Venkatasubramanian, ICDE 2007.

P is the distribution in a class, Q the one in the whole table; absent values count with probability 0, NULL is a value.
All four distances are convex in P, so merging classes that satisfy t gives one that does (the paper's generalization
property, section 4): monotone under generalization. They are not monotone under suppression: leaving rows out changes
Q itself, and with it the distance of classes that were kept.

Counts are compared as integers (n*M against N*m, not n/N against m/M), so the sums are exact and independent of order;
only the last division, and the logarithms of `kl`, are a double's. A class violates when its distance > t * (1 + 1e-9).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from markupsafe import Markup

from sqlanon.engines.columns import Column, Kind
from sqlanon.models.base import Groups, PrivacyModel, Runs, SampleTest, relation
from sqlanon.models.numbers import (
    INFORMATION_SCALE,
    RELATIVE_TOLERANCE,
    RUNNING_TOLERANCE,
    integer_type,
    logarithm_scale,
    rounded_up,
    running_error,
)
from sqlanon.policy import AttributeSection, ModelParameters
from sqlanon.sql import Identifier, Renderer, Statement, macro


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
        given = parameters.model_dump(exclude={"model"})
        return DISTANCES[given.pop("distance")](**given)

    @property
    def sentence(self) -> str:
        return (
            f"In every class “{self.attribute}” is distributed nearly as in the whole table: at a distance of "
            f"{self.t:g} at most ({self.distance_in_words})."
        )

    def sample_test(self, render: Renderer, groups: Groups) -> SampleTest:
        measure = Markup(self.measure(render, groups).text)
        values = {"classes": groups.classes, "measure": measure, "greatest": self.greatest}
        return SampleTest("tree/decide/sampling/test_closeness", values)

    @abstractmethod
    def measure(self, render: Renderer, groups: Groups) -> Statement: ...

    def min_suppressed(self) -> Markup:
        """Rows that must go for the rest R of a class P, as one, to come within t of the table's distribution Q.

        The distance is convex and at most 1, so with a share f of the rows gone d(P, Q) <= (1 - f) d(R, Q) + f. As
        d(R, Q) <= t: f >= (d(P, Q) - t) / (1 - t).
        """
        if self.greatest >= 1:
            return Markup(0)
        return macro("models.share_beyond", self.greatest)

    def _prefixes_of_groups(self, render: Renderer, runs: Runs, groups: Sequence[Markup]) -> Statement:
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

    def _render(self, render: Renderer, template: str, groups: Groups, integer: Markup, **more: Any) -> Statement:
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

    def min_suppressed(self) -> Markup:
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

    def implies_violation(self) -> Markup:
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
            "tree/decide/sampling/test_divergence",
            {**counts, "greatest": self.greatest, "scale": INFORMATION_SCALE},
        )

    def min_suppressed(self) -> Markup:
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


DISTANCES: dict[str, type[TCloseness]] = {
    kind.distance: kind for kind in (EqualTCloseness, OrderedTCloseness, HierarchicalTCloseness, KlTCloseness)
}
