"""The report of a differentially private run, in words of those who answer for the data. All numbers are public."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from sqlanon.catalog import Run
from sqlanon.mechanisms.charges import CHOICE
from sqlanon.methods.differential_privacy.drawing.units import amounts_in_units
from sqlanon.methods.differential_privacy.result import BudgetState, Guarantee, PrivateResult
from sqlanon.report.html import render_own
from sqlanon.support.exact_numbers import decimal_text

CHECKS = {
    "columns_declared": "The release has the declared columns, in the order of the source, and no other.",
    "labels_public": "The labels of each column cover its declared domain, each value once.",
    "cells_public": "No row is of another cell than the combinations of these labels.",
    "cells_complete": "Every cell is there once with a count, also those without rows in the source.",
    "cells_above_threshold": "Every cell that is there has a count from the threshold on, and is there once.",
    "counts_drawn": "Every cell shows the count that was drawn for it.",
}


def render_private(run: Run, result: PrivateResult) -> str:
    """The whole page of a run that released noisy counts."""
    score = json.loads(run.policy)["algorithm"].get("score")
    return render_own(
        __package__,
        run,
        result,
        CHECKS,
        promise=promise_text(result.guarantee),
        belief=belief_text(result.guarantee),
        unit=unit_text(result.guarantee),
        budget=None if result.budget is None else budget_text(result.budget),
        mechanisms=list(list_mechanisms(result.guarantee, score)),
        sensitivity=sensitivity_text(result.guarantee),
    )


def promise_text(guarantee: Guarantee) -> str:
    """Say what epsilon means for one unit: by how much its rows can change the probability of a release."""
    factor = math.ceil(100 * math.exp(guarantee.epsilon)) / 100
    times = f"{factor:,.2f}" if factor < 1000 else f"{factor:,.0f}"
    whom = "any one row" if guarantee.unit == "row" else "any one person"
    return (
        f"Epsilon is {guarantee.epsilon:g}. Whatever this release shows was at most {times} times as likely, and at"
        f" least 1/{times} as likely, as it would have been without {whom}. That holds whatever somebody knows already."
    )


def belief_text(guarantee: Guarantee) -> str:
    """Say how sure somebody can become by the release.

    To change a unit is to remove it and to add another: twice epsilon.
    """
    whom = "row" if guarantee.unit == "row" else "person"
    present, value = (math.ceil(1000 / (1 + math.exp(-times * guarantee.epsilon))) / 10 for times in (1, 2))
    return (
        f"Who thought it as likely as not that a {whom} is in the data is sure of it by at most {present:g} % after"
        f" reading the release, instead of 50 %; who doubted between two values of a {whom}, by at most {value:g} %."
    )


def unit_text(guarantee: Guarantee) -> str:
    """Say whether rows or persons are protected, and what follows."""
    if guarantee.unit == "row":
        return (
            "Rows are protected, not persons: for a person with several rows the loss adds up, n times epsilon for n"
            " rows."
        )
    return (
        f"Persons are protected, told apart by {guarantee.unit}: at most {guarantee.contribution:,} rows of each were"
        " counted, chosen by a secret hash; further rows, and those without a person, were left out."
    )


def budget_text(budget: BudgetState) -> str:
    """Say what releases before consumed, this one, and what is left."""
    before, consumed, left, allowed = map(Fraction, (budget.before, budget.consumed, budget.left, budget.allowed))
    return (
        f"Earlier releases of this source consumed {decimal_text(before, up=True)} of budget {budget.ledger}, this one"
        f" {decimal_text(consumed, up=True)}; {decimal_text(left, up=False)} of {decimal_text(allowed, up=False)} was"
        f" left. Who has all of them learns at most as much as from one release with epsilon"
        f" {decimal_text(before + consumed, up=True)}."
    )


def sensitivity_text(guarantee: Guarantee) -> str:
    """Say what a sensitivity is of."""
    whom = "row" if guarantee.unit == "row" else "person"
    text = f"The sensitivity is the most by which one {whom} changes what noise is added to"
    if all(one.mechanism != CHOICE for one in guarantee.mechanisms):
        return f"{text}: counts."
    return f"{text}: counts, and the scores by which choices are made."


def list_mechanisms(guarantee: Guarantee, score: str | None) -> Iterator[dict[str, Any]]:
    """List mechanisms of the same loss once, with how often each was used.

    score: of choices, as the policy names it; None where it names none.
    """
    for one, times in Counter(guarantee.mechanisms).items():
        sensitivity, scale = amounts_in_units(one, score)
        yield {
            "name": one.mechanism,
            "times": times,
            "epsilon": decimal_text(Fraction(one.epsilon), up=True),
            "sensitivity": sensitivity,
            "scale": scale,
        }
