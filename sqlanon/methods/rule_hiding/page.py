"""The report of a run that hid association rules, in words of those who answer for the data.

Rules are named by their place in the policy: their items are values of the data, and what the release hides.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlanon.catalog import Run
from sqlanon.methods.rule_hiding.result import HidingResult, OtherRules
from sqlanon.report.html import render_own
from sqlanon.report.number_text import UNKNOWN, percent, whole
from sqlanon.support.quantities import quantity

CHECKS = {
    "columns_equal": "The release has the columns of the policy, with their types and in their order.",
    "rules_hidden": "No rule has both its support and its confidence in the release.",
    "other_items_equal": "Items that no rule names, and all other values, are those of the source.",
    "nothing_added": "No item is there more often than in the source.",
}


def render_hiding(run: Run, result: HidingResult) -> str:
    """The whole page of a run that hid association rules; it holds no value of the data."""
    return render_own(
        __package__,
        run,
        result,
        CHECKS,
        taken=quantity(result.removed, "item").partition(" ")[2] + " taken out",
        changed=quantity(result.changed, result.unit.removesuffix("s")),
        rules=list(_list_rules(result)),
        others=others_text(result.others),
    )


def others_text(others: OtherRules | None) -> str:
    """Say how many rules were lost, and how many came, that were not to be hidden."""
    if others is None:
        return "Other rules were not mined: the policy asks for none (most: 1)."
    return (
        f"Of the other rules with an item that was taken out, with up to {quantity(others.most, 'item')} and one of"
        f" them on the right side, {whole(others.mined)} could be mined from the source; {whole(others.missing)} of"
        f" them can't be mined any more (lost). {whole(others.ghosts)} can be mined that could not before (ghosts)."
        " Rules without such an item are the same in both."
    )


def _list_rules(result: HidingResult) -> Iterator[dict[str, Any]]:
    for rule in result.rules:
        texts = {
            "Hidden below support": whole(rule.least_support),
            "or confidence": percent(rule.least_confidence),
            "Support before": whole(rule.support),
            "Support after": whole(rule.released_support),
            "Confidence before": _confidence(rule.support, rule.left_support),
            "Confidence after": _confidence(rule.released_support, rule.released_left_support),
        }
        cells = [{"name": name, "text": text} for name, text in texts.items()]
        yield {"number": rule.number, "was_mined": rule.was_mined, "cells": cells}


def _confidence(both: int, left: int) -> str:
    """Write a share rounded down: one below a threshold never looks as if it reached it."""
    return percent(1000 * both // left / 1000 if 100 * both >= left else both / left) if left else UNKNOWN
