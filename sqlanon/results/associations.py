"""Association rules of a table: what quasi-identifiers tell of sensitive values, and of whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VERSION = 1  # of the fields below


@dataclass(frozen=True)
class AssociationRule:
    """A rule: who has the values of `left` has the value of `right`.

    left, right: texts of values by column; None for NULL.
    support: the members, rows or persons, with the values of both sides. left_support: those with the left side's.
    confidence: support over left_support.
    singles_out: whether the left side is of fewer members than k.
    gives_away: whether it is of k or more, and the confidence is above the bound.
    """

    left: Mapping[str, str | None]
    right: Mapping[str, str | None]
    support: int
    left_support: int
    confidence: float
    singles_out: bool
    gives_away: bool


@dataclass(frozen=True)
class Associations:
    """The rules of a table with a least support and a least confidence.

    unit: what is counted, `rows` or `persons`. most: the columns of the largest left sides.
    bound: the confidence above which a rule gives away; k: the members below which a left side singles out.
    total, singling_out, giving_away: how many rules there are, and are such.
    rules: those with the greatest confidence, then those with the greatest support; of equal ones, any.
    """

    unit: str
    k: int
    support: int
    confidence: float
    bound: float
    most: int
    total: int
    singling_out: int
    giving_away: int
    rules: tuple[AssociationRule, ...]
