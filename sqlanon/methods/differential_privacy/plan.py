"""Plans of differentially private runs: a policy resolved against names and types of a table, never its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.errors import PolicyError
from sqlanon.methods.differential_privacy.policy import PrivateCounts
from sqlanon.methods.differential_privacy.policy_rules import private_counts, target_rule
from sqlanon.methods.differential_privacy.public_domain import PublicDomain, TaxonomyDomain, public_domain
from sqlanon.plan.drawn_plan import DrawnPlan, find_places, name_problems
from sqlanon.plan.trust import require_trusted
from sqlanon.policy import Policy, Role
from sqlanon.policy.differential_privacy import COUNT, mechanism_of
from sqlanon.policy.document import path_text
from sqlanon.sql import Relation

_MOST_PLACES = 2_000_000  # times classes, whose rows a search keeps in memory


@dataclass(frozen=True)
class PrivatePlan(DrawnPlan):
    """Everything that a differentially private run needs to know before it looks at a row.

    domains: of the quasi-identifiers, by name, in the order of the source's columns.
    target: the domain of the counted attribute; rows of other values are left out.
    persons: the column that tells persons apart, where these are the unit; its rows that are NULL are left out.
    contribution: the most rows that a unit adds.
    """

    domains: Mapping[str, PublicDomain]
    target: tuple[str, TaxonomyDomain] | None
    epsilon: Fraction
    persons: str | None
    contribution: int
    warnings: tuple[str, ...]

    @property
    def algorithm(self) -> PrivateCounts:
        return private_counts(self.policy)

    @property
    def classes(self) -> int:
        """Count the values of the target, or 1 where there is none."""
        return 1 if self.target is None else self.target[1].size

    @property
    def shown(self) -> list[str]:
        """Name the columns of the release that tell its cells apart."""
        return [*self.domains, *([] if self.target is None else [self.target[0]])]


def resolve_private(policy: Policy, engine: Engine, *, replace: bool = False) -> PrivatePlan:
    """Resolve a policy that asks for differential privacy; no row of the source is looked at.

    Raises one PolicyError with every problem.
    """
    problems = list(_place_problems(policy))
    if problems:
        raise PolicyError(problems)
    source, release, problems = find_places(policy, engine, replace)
    require_trusted(policy, engine, source)
    columns = engine.columns(source)
    problems += _column_problems(policy, columns, str(source))
    problems += _unit_problems(policy, columns)
    domains: dict[str, PublicDomain] = {}
    for column in columns:
        attribute = policy.attributes.get(column.name)
        if attribute is None or attribute.is_omitted:
            continue
        try:
            domains[column.name] = public_domain(column, attribute, None, is_target=column.name == policy.target)
        except PolicyError as error:
            problems += [f"{path_text(('attributes', column.name))}: {problem}" for problem in error.problems]
    if problems:
        raise PolicyError(problems)
    plan = _plan(policy, source, release, domains)
    if plan.classes > plan.algorithm.cells:
        raise PolicyError(f"algorithm.cells: the target alone has {plan.classes:,} values.")
    if plan.algorithm.chooses:
        _require_places(plan)
    return plan


def _require_places(plan: PrivatePlan) -> None:
    """Refuse domains whose rows by place and class are more numbers than a search can keep."""
    sizes = {name: domain.size for name, domain in plan.domains.items()}
    if sum(sizes.values()) * plan.classes > _MOST_PLACES:
        widest = max(sizes, key=lambda name: sizes[name])
        raise PolicyError(
            f"The domains have {sum(sizes.values()):,} places and the target {plan.classes:,} classes; their"
            f" product may be {_MOST_PLACES:,} at most. '{widest}' has the most, {sizes[widest]:,}: declare longer"
            " steps or fewer values."
        )


def _plan(policy: Policy, source: Relation, release: Relation, domains: dict[str, PublicDomain]) -> PrivatePlan:
    asked = mechanism_of(policy.privacy)
    assert asked is not None
    target = None
    if policy.target is not None:
        counted = domains.pop(policy.target)
        assert isinstance(counted, TaxonomyDomain)
        target = policy.target, counted
    return PrivatePlan(
        policy,
        source,
        release,
        domains,
        target,
        asked.exact,
        asked.persons,
        asked.contribution,
        tuple(_warnings(policy, asked.exact, asked.persons)),
    )


def _place_problems(policy: Policy) -> Iterator[str]:
    """Say which places of source and release are not for differential privacy."""
    if policy.source.file is not None:
        yield "source.file: columns of a file have the types that its rows look like; load it into a table first."
    if policy.release.file is not None:
        yield "release.file: write a table; it can be exported afterwards."
    if policy.release.url not in (None, policy.source.url):
        yield "release.url: write a table of the source's database; it can be copied afterwards."


def _column_problems(policy: Policy, columns: Sequence[Column], table: str) -> Iterator[str]:
    yield from name_problems(policy, columns, table)
    for name, attribute in policy.attributes.items():
        if not attribute.is_omitted and name.lower() == COUNT:
            place = path_text(("attributes", name))
            yield f"{place}: the release has a column '{COUNT}' of its own; rename this one in a view."
    if not any(one.role is Role.QUASI_IDENTIFIER for one in policy.attributes.values()):
        yield "No attribute has role quasi-identifier: there is nothing to count."


def _unit_problems(policy: Policy, columns: Sequence[Column]) -> Iterator[str]:
    """Refuse persons that can't be told apart: a run would fail over it after it was charged."""
    asked = mechanism_of(policy.privacy)
    for column in columns:
        if asked is not None and column.name == asked.persons and not column.compares:
            yield (
                f"unit: values of '{column.name}' ({column.type}) can't be compared; use a view that has a key of a"
                " simple type."
            )


def _warnings(policy: Policy, epsilon: Fraction, persons: str | None) -> Iterator[str]:
    if epsilon > 10:
        yield f"epsilon {float(epsilon):g} promises next to nothing: 1 or less is usual."
    if persons is None:
        yield "A row is protected, and not a person with several: for these say unit: {column: …, rows: …}."
    if policy.target is None and private_counts(policy).chooses:
        yield "Without a target, score: max is the number of rows: the largest groups are taken apart first."
    rule = target_rule(policy)
    if rule is not None:
        yield rule
