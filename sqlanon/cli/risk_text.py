"""Text of `risk`: the figures for people."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlanon.cli.layout import WHOLE, number, percent, table
from sqlanon.results.risk import most_distinct
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.results.measures import SingledOut
    from sqlanon.results.risk import (
        Attack,
        Evidence,
        HouseholdRisk,
        IdentifierSign,
        IndividualRisk,
        ItemRisk,
        PolicyItemRisk,
        PolicyRisk,
        PopulationUniqueness,
        ShareAtRisk,
        SubsetRisk,
        SudaRisk,
        TableRisk,
        UniquenessEstimate,
    )

SHOWN = 5  # subsets of each size


def policy_text(both: PolicyRisk) -> str:
    """The risk of a policy's source and of its release."""
    source = table_text(both.source, "Source")
    release = both.note if both.release is None else table_text(both.release, "Release")
    return f"{source}\n\n{release}"


def table_text(risk: TableRisk, what: str) -> str:
    """The risk of one table."""
    members = f"{risk.member}s"
    counted = quantity(risk.rows, "row") + ("" if risk.persons is None else f" of {quantity(risk.persons, 'person')}")
    head = f"{what}: {counted} in {quantity(risk.classes, 'class', 'classes')} of {', '.join(risk.quasi_identifiers)}."
    lines = [
        head,
        f"Alone in their class: {quantity(risk.sample_uniques, risk.member)}"
        f" ({percent(risk.sample_uniques / max(1, risk.members))}).",
        _attacks_text(risk),
        *([] if risk.singled_out is None else [f"Known by {singled_text(risk.singled_out)}."]),
        *_population_lines(risk),
        *([] if risk.population_uniqueness is None else [uniqueness_text(risk.population_uniqueness, risk.member)]),
        *singling_lines(risk),
        *([] if risk.individual is None else [_individual_text(risk.individual, members)]),
        *([] if risk.household is None else [_household_text(risk.household, members)]),
        *(f"Warning: {warning}" for warning in risk.warnings),
    ]
    return "\n".join(lines)


def policy_items_text(both: PolicyItemRisk) -> str:
    """The risk by known items of a policy's source and of its release."""
    source = items_text(both.source, "Source")
    release = both.note if both.release is None else items_text(both.release, "Release")
    return f"{source}\n\n{release}"


def items_text(risk: ItemRisk, what: str) -> str:
    """The risk of the persons of one table by the items that somebody knows."""
    head = f"{what}: {quantity(risk.persons, 'person')} with {quantity(risk.items, 'different item')} in {risk.column}."
    rows = [
        [one.known, "not counted", None, None]
        if one.alone is None or one.share is None or one.mean is None
        else [one.known, f"{one.alone:,} ({percent(one.share)})", one.least, number(round(one.mean, 2))]
        for one in risk.known
    ]
    headings = ["known items", "persons alone", "fewest candidates", "mean of a person"]
    return f"{head}\n{table(headings, rows, widest=WHOLE)}" if rows else head


def singled_text(singled: SingledOut) -> str:
    """The shares of persons that are alone, by the number of their rows that somebody knows, after `known by`."""
    shares = [(known, "not counted" if share is None else percent(share)) for known, share in singled.shares]
    (_, one), *others = shares
    return f"1 of their rows: {one} of persons are alone" + "".join(f"; by {known}: {share}" for known, share in others)


def _attacks_text(risk: TableRisk) -> str:
    """A line for each attacker: the greatest risk, the mean, and the share of the members above each threshold."""
    headings = ["attacker", "greatest", "mean", *(f"above {percent(one.threshold)}" for one in risk.prosecutor.at_risk)]
    rows: list[list[object]] = [_attack("knows who is in it (prosecutor)", risk.prosecutor)]
    if risk.journalist is not None:
        rows.append(_attack("knows who is in the population (journalist)", risk.journalist))
    rows.append(["matches all (marketer)", None, percent(risk.marketer), *(None for _ in risk.prosecutor.at_risk)])
    return table(headings, rows, widest=WHOLE)


def _population_lines(risk: TableRisk) -> list[str]:
    """The members that are alone in a population that is known."""
    known = risk.journalist
    if known is None or known.population is None:
        return []
    share = percent((known.uniques or 0) / max(1, risk.members))
    return [f"Alone in the population of {known.population:,} {risk.member}s: {known.uniques:,} of them ({share})."]


def _attack(name: str, attack: Attack) -> list[object]:
    return [name, percent(attack.max), percent(attack.mean), *(percent(one.share) for one in attack.at_risk)]


def _individual_text(individual: IndividualRisk, members: str) -> str:
    """The individual risks: what is expected, the greatest, and who is above each threshold."""
    weights = "" if individual.weights is None else f" by the weights {individual.weights}"
    return (
        f"Individual risk{weights}: {number(round(individual.sum, 1))} {members} are picked rightly, as expected; the"
        f" greatest risk is {percent(individual.max)}; {_above(individual.above)}."
    )


def _household_text(household: HouseholdRisk, members: str) -> str:
    """The risks of households."""
    return (
        f"Of {household.households:,} households by {household.column}: {number(round(household.sum, 1))} {members} are"
        f" known with theirs, as expected; the greatest risk is {percent(household.max)}; {_above(household.above)}."
    )


def _above(shares: Sequence[ShareAtRisk]) -> str:
    return "above " + ", ".join(f"{percent(one.threshold)} are {percent(one.share)}" for one in shares)


_ESTIMATORS = {"zayatz": "Zayatz", "pitman": "Pitman", "snb": "slide negative binomial"}


def uniqueness_text(measured: PopulationUniqueness, member: str) -> str:
    """The estimates of uniqueness in the population, that to trust marked."""
    head = (
        f"Alone in a population of {measured.population:,} {member}s, of which {percent(measured.fraction)} are here:"
    )
    rows = [
        [name, *_estimate(getattr(measured, field)), "to trust (Dankar et al.)" if field == measured.trusted else ""]
        for field, name in _ESTIMATORS.items()
    ]
    return f"{head}\n{table(['estimate', f'{member}s', 'share', ''], rows, widest=WHOLE)}"


def _estimate(one: UniquenessEstimate) -> list[str]:
    if one.uniques is None or one.share is None:
        return [one.problem or "", ""]
    return [number(round(one.uniques, 1)), percent(one.share)]


def singling_lines(risk: TableRisk) -> list[str]:
    """Tables of what was asked for."""
    return [
        *([] if risk.subsets is None else [_subsets_text(risk.subsets)]),
        *([] if risk.suda is None else [_suda_text(risk.suda, risk.rows)]),
        *([_identifiers_text(risk.identifiers)] if risk.identifiers else []),
    ]


def _subsets_text(subsets: tuple[SubsetRisk, ...]) -> str:
    """The most distinct subsets of each size."""
    rows: list[list[object]] = [
        [", ".join(one.columns), percent(one.distinction), percent(one.separation)]
        for one in most_distinct(subsets, SHOWN)
    ]
    head = f"Of {quantity(len(subsets), 'subset')} of columns, the {SHOWN} most distinct of each size:\n"
    return head + table(["columns", "distinction", "separation"], rows)


def _suda_text(suda: SudaRisk, rows: int) -> str:
    """The minimal sample uniques by their size, and what each column contributes to their scores."""
    sizes = ", ".join(f"{count:,} of {size}" for size, count in suda.minimal_uniques_by_size.items())
    have = "has" if suda.rows == 1 else "have"
    head = (
        f"Minimal sample uniques, by how many columns they need: {sizes}. {quantity(suda.rows, 'row')}"
        f" ({percent(suda.rows / max(1, rows))}) {have} one.\n"
        f"Greatest SUDA score {number(suda.score_max)}, greatest DIS-SUDA score {number(suda.dis_max)}"
        f" (sampling fraction {number(suda.fraction)}).\n"
    )
    shares = sorted(suda.contribution_by_column.items(), key=lambda one: -one[1])
    return head + table(["column", "of the scores"], [[name, percent(share / 100)] for name, share in shares])


def _identifiers_text(signs: tuple[IdentifierSign, ...]) -> str:
    """The columns that look like identifiers, and why."""
    rows: list[list[object]] = [[one.column, one.kind, _reason(one.evidence)] for one in signs]
    return "Columns that look like identifiers:\n" + table(["column", "kind", "evidence"], rows)


def _reason(evidence: Evidence) -> str:
    reasons = [word for word, holds in (("name", evidence.name), ("type", evidence.type)) if holds]
    return ", ".join([*reasons, *([] if evidence.share is None else [f"{percent(evidence.share)} of the values"])])
