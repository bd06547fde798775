"""Units in which people read sensitivities and scales: rows, or bits of information."""

from __future__ import annotations

from fractions import Fraction

from sqlanon.mechanisms.charges import CHOICE
from sqlanon.methods.differential_privacy.drawing.scoring import BITS, GRAIN
from sqlanon.methods.differential_privacy.result import MechanismCharge
from sqlanon.support.exact_numbers import decimal_text


def amounts_in_units(charge: MechanismCharge, score: str | None) -> tuple[str, str]:
    """Write the sensitivity and the scale of a mechanism with their unit.

    Choices are made by scores, which are whole numbers of a small part of a row or bit.
    score: as the policy names it; None where it names none.
    """
    parts, unit = 1, "row"
    if charge.mechanism == CHOICE:
        parts, unit = (2**BITS, "bit") if score == "information-gain" else (GRAIN, "row")
    sensitivity, scale = Fraction(charge.sensitivity, parts), Fraction(charge.scale) / parts
    return _with_unit(decimal_text(sensitivity, up=True), unit), _with_unit(decimal_text(scale, up=False), unit)


def _with_unit(amount: str, unit: str) -> str:
    return f"{amount} {unit}" if amount == "1" else f"{amount} {unit}s"
