"""Remarks of a draft on its columns together: how identifying they are, what follows from what, what the trial cost."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from sqlanon.inquiries.profile.column_facts import ColumnFacts, Dependence, Profile
from sqlanon.inquiries.profile.costs import DraftCosts
from sqlanon.inquiries.profile.writing import comment, percent
from sqlanon.policy import Role

PAIRS_SHOWN = 5
TELLING = 0.01  # the share of rows from which on a column that is kept is said to single out
WIDTH = 116  # characters of a line


def refused(refusals: Sequence[str]) -> str:
    """The lines at the head about what `sqlanon check` would refuse; none where it would accept the draft."""
    if not refusals:
        return ""
    lines = ["# `sqlanon check` REFUSES THIS DRAFT AS IT STANDS:"]
    for refusal in refusals:
        lines += textwrap.wrap(f"- {comment(refusal)}", WIDTH, initial_indent="#   ", subsequent_indent="#     ")
    return "\n".join(lines)


def singled_out(facts: ColumnFacts, role: Role) -> str:
    """The end of a comment on a column that is released as it is, and has values of single rows."""
    if role not in (Role.SENSITIVE, Role.INSENSITIVE) or facts.unique_share < TELLING:
        return ""
    return (
        f"; it is released exactly, and its values single out {percent(facts.unique_share)} of the rows for whoever"
        " knows them: if somebody can, say quasi-identifier"
    )


def combinations(profile: Profile) -> str:
    """The lines about how identifying the proposed quasi-identifiers are together."""
    if profile.combination is None:
        return "# No column was taken for a quasi-identifier: a release needs at least one."
    about = "" if profile.exact else "about "
    lines = [
        "# How identifying the proposed quasi-identifiers are together: the share of rows alone with their values.",
        f"#   all {len(profile.combination.columns)}: {about}{percent(profile.combination.unique_share)}",
    ]
    for pair in profile.pairs[:PAIRS_SHOWN]:
        names = " + ".join(comment(name) for name in pair.columns)
        lines.append(f"#   {names}: {about}{percent(pair.unique_share)}")
    return "\n".join(lines)


def dependences(profile: Profile) -> str:
    """The lines about columns that follow from others; none where none does."""
    if not profile.dependences:
        return ""
    lines = ["# Columns that follow from others, as each value of one goes with one value of the other:"]
    return "\n".join([*lines, *(f"#   {_dependence(profile, one)}" for one in profile.dependences)])


def _dependence(profile: Profile, one: Dependence) -> str:
    of, on = comment(one.of), comment(one.on)
    if profile.proposals[one.on].role is Role.SENSITIVE:
        return f"{of} -> {on}: whoever knows {of} knows what is sensitive; without {of} the models cost less"
    if one.mutual:
        return f"{of} <-> {on}: they say the same; release one of them, and omit the other"
    return f"{of} -> {on}: {on} says nothing more; released both, they cost more than {of} alone"


def tried(costs: DraftCosts | None) -> str:
    """The lines about the trial; none where there was none."""
    if costs is None:
        return ""
    if costs.draft is None:
        return f"# The draft was not tried: {comment(costs.problem or '')}"
    part = "every combination of values" if costs.is_whole else "a part of the combinations of values"
    lines = [
        f"# Tried on a sample of {costs.rows:,} rows ({part}): GCP {percent(costs.draft.loss)}, {costs.draft.classes:,}"
        " classes.",
        "# GCP is the detail that quasi-identifiers lose, from 0 (every value is shown) to 100 % (none is).",
    ]
    if not costs.is_whole:
        lines.append("# The whole table loses less, as its classes are closer together.")
    return "\n".join([*lines, *_costliest(costs)])


def _costliest(costs: DraftCosts) -> list[str]:
    name = costs.costliest
    if name is None or costs.draft is None:
        return []
    without = costs.without_column.get(name)
    others = "" if without is None else f" {_others(costs, name)}"
    return [f"# The column that loses most is {comment(name)} ({percent(costs.draft.of[name])}).{others}"]


def _others(costs: DraftCosts, name: str) -> str:
    assert costs.draft is not None
    without, with_it = percent(costs.without_column[name].loss), percent(costs.draft.loss_but_of(name))
    if without == with_it:
        return f"Without it the others lose no less, {with_it}."
    return f"Without it the others lose {without}, not {with_it}."


def column(costs: DraftCosts | None, name: str) -> str:
    """The end of a column's comment: what it loses, and what the others lose without it."""
    if costs is None or costs.draft is None or name not in costs.draft.of:
        return ""
    loss_text = f"; loses {percent(costs.draft.of[name])}"
    if name not in costs.without_column:
        return loss_text
    without, with_it = percent(costs.without_column[name].loss), percent(costs.draft.loss_but_of(name))
    return f"{loss_text}, the others {with_it}, " + (
        "without it too" if without == with_it else f"or {without} without it"
    )
