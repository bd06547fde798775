"""Rules between the keys of policies that ask for differential privacy, and of those that don't."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlanon.methods.differential_privacy.policy import Marginals, PrivateCounts
from sqlanon.policy.algorithm_parameters import Recodes
from sqlanon.policy.attributes import AttributeSection, Role
from sqlanon.policy.differential_privacy import Unit, mechanism_of
from sqlanon.policy.document import Path
from sqlanon.policy.grammar import Policy
from sqlanon.support.suggest import did_you_mean

_NAMES = "diffgen, contingency, marginals or mst"
_DOMAIN = "as reading it off the data would tell of single rows"
_UNUSED = ("suppression", "remainder", "suppressed", "ranges", "subject")
_UNUSED_OF_COLUMNS = ("show", "order", "bottom", "top", "sets")


def private_counts(policy: Policy) -> PrivateCounts:
    """Return the algorithm of a policy that asks for differential privacy."""
    assert isinstance(policy.algorithm, PrivateCounts)
    return policy.algorithm


def target_rule(policy: Policy) -> str | None:
    """Say what becomes of rows whose target is not declared; None without a target."""
    if policy.target is None:
        return None
    return (
        f"Rows whose '{policy.target}' is none of its declared values are left out. How many there are is told nowhere,"
        " as it would tell of single rows."
    )


def private_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    """Say what does not go with differential privacy, or only with it.

    place: writes the path of a key for people.
    """
    asked, algorithm = mechanism_of(policy.privacy), policy.algorithm
    if asked is None:
        if algorithm.recodes is Recodes.COUNTS:
            model = "{model: differential-privacy, epsilon: …}"
            yield f"{place(('algorithm',))}: {algorithm.name} protects by differential privacy; ask for {model}."
        return
    if algorithm.recodes is not Recodes.COUNTS:
        yield f"{place(('privacy',))}: differential-privacy needs algorithm: {_NAMES}, not {algorithm.name}."
        return
    if len(policy.privacy) > 1:
        yield f"{place(('privacy',))}: differential-privacy makes no classes for other models; ask for it alone."
    for key in _UNUSED:
        if key in policy.model_fields_set:
            yield f"{place((key,))}: differential privacy does not use it; leave it out."
    if policy.history.k is not None:
        yield f"{place(('history', 'k'))}: noise divides nobody into groups; leave it out."
    if policy.digest == "run":
        yield f"{place(('digest',))}: a release of differential privacy has no digest of the run; leave it out."
    if policy.release.layout != "flat":
        yield f"{place(('release', 'layout'))}: a release of cells has no layout: star; leave it out."
    limit = None if policy.budget is None else policy.budget.limit
    if limit is not None and asked.exact > limit:
        path = place(("budget", "epsilon"))
        yield f"{path}: {float(limit):g} for all releases does not cover this one, whose epsilon is {asked.epsilon:g}."
    unit = asked.unit
    if isinstance(unit, Unit):
        yield from _unit_problems(policy, unit, place)
    yield from _target_problems(policy, place)
    yield from _marginal_problems(policy, place)
    for name, attribute in policy.attributes.items():
        yield from _column_problems(policy, name, attribute, place)


def _marginal_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    if not isinstance(policy.algorithm, Marginals):
        return
    counted = [
        name
        for name, attribute in policy.attributes.items()
        if attribute.role is Role.QUASI_IDENTIFIER or name == policy.target
    ]
    named = {name for marginal in policy.algorithm.marginals for name in marginal}
    path = place(("algorithm", "marginals"))
    for name in sorted(named - set(counted)):
        yield f"{path}: '{name}' is neither a quasi-identifier nor the target; {did_you_mean(name, counted)}"
    for name in counted:
        if name not in named:
            yield f"{path}: '{name}' is in none; add [{name}], or give it role omit to leave it out."


def _unit_problems(policy: Policy, unit: Unit, place: Callable[[Path], str]) -> Iterator[str]:
    path = place(("privacy", 0, "unit"))
    attribute = policy.attributes.get(unit.column)
    if attribute is None:
        yield f"{path}: '{unit.column}' is not among the attributes; {did_you_mean(unit.column, policy.attributes)}"
    elif attribute.role is not Role.IDENTIFIER:
        yield f"{path}: '{unit.column}' tells persons apart: its role must be identifier, not {attribute.role.value}."


def _target_problems(policy: Policy, place: Callable[[Path], str]) -> Iterator[str]:
    target = policy.target
    if target is None:
        return
    path, attribute = place(("algorithm", "target")), policy.attributes.get(target)
    if attribute is None:
        yield f"{path}: '{target}' is not among the attributes; {did_you_mean(target, policy.attributes)}"
    elif attribute.role not in (Role.SENSITIVE, Role.INSENSITIVE):
        yield f"{path}: '{target}' must be sensitive or insensitive, not {attribute.role.value}."
    elif attribute.values is None:
        yield f"{path}: '{target}' needs its classes declared, as values: [yes, no], {_DOMAIN}."


def _column_problems(
    policy: Policy, name: str, attribute: AttributeSection, place: Callable[[Path], str]
) -> Iterator[str]:
    path = place(("attributes", name))
    given = [key for key in ("domain", "values", "hierarchy") if getattr(attribute, key) is not None]
    for key in _UNUSED_OF_COLUMNS:
        if key in attribute.model_fields_set:
            yield f"{path}: differential privacy does not use {key}; leave it out."
    if attribute.nulls == "refuse":
        yield f"{path}: nulls: refuse would tell of single rows; leave it out: NULL is a value of the domain."
    if attribute.role.leaves_out:
        if given:
            yield f"{path}: {given[0]} is not used of an identifier, which is left out."
        return
    if attribute.role is not Role.QUASI_IDENTIFIER and name != policy.target:
        yield (
            f"{path}: only quasi-identifiers and the target are counted; make it a quasi-identifier with a declared"
            " domain, or give it role omit to leave it out."
        )
        return
    if not given:
        yield (
            f"{path}: its domain must be declared, {_DOMAIN}: domain: {{from: …, below: …, step: …}} of numbers, a"
            " hierarchy (csv or mapping with unknown), or values: […]."
        )
    if len(given) > 1:
        yield f"{path}: {' and '.join(given)} are given, and one of them is enough."
    hierarchy = attribute.hierarchy
    if hierarchy is not None and hierarchy.kind not in ("csv", "mapping"):
        yield (
            f"{path}: the values of a {hierarchy.kind} hierarchy are those of the data, which must not be looked up;"
            " use domain, values, or a csv or mapping with all of them."
        )
    elif hierarchy is not None and hierarchy.unknown is None:
        yield f"{path}: values that the hierarchy lacks need a public place: write unknown: OTHER into it."
