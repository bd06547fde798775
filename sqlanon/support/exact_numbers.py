"""Exact numbers: read from the text of a decimal number, written for people on the safe side."""

from __future__ import annotations

import math
import re
from fractions import Fraction

_DECIMAL = re.compile(r"\d{1,18}(?:\.\d{1,30})?", re.ASCII)
_FINEST = 10**30  # parts of 1 that are told apart


def parse_decimal(text: str) -> Fraction | None:
    """Read a decimal number such as `0.1` as the fraction that it means; None where the text is no such number."""
    return Fraction(text) if _DECIMAL.fullmatch(text) else None


def round_outward(number: Fraction) -> Fraction:
    """Return the number itself, or, of one with a denominator above 10^30, the next greater multiple of 10^-30."""
    return number if number.denominator <= _FINEST else Fraction(math.ceil(number * _FINEST), _FINEST)


def decimal_text(number: Fraction, *, up: bool, decimals: int = 6) -> str:
    """Write a number with at most so many decimals, rounded up or down where these do not suffice: 1/3 is 0.333334."""
    unit = 10**decimals
    scaled = math.ceil(number * unit) if up else math.floor(number * unit)
    sign, (whole, part) = "-" if scaled < 0 else "", divmod(abs(scaled), unit)
    return f"{sign}{whole}" + (f".{part:0{decimals}}".rstrip("0") if part else "")
