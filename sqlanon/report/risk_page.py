"""The page of a table's risk: one HTML file of aggregates that loads nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from sqlanon import __version__
from sqlanon.report.drawing.bars import draw_bars, list_bars, share_bar
from sqlanon.report.html import template
from sqlanon.report.number_text import bucket_label
from sqlanon.results.risk import PolicyRisk, TableRisk, most_distinct

SUBSETS = 10  # of each size that are listed


def render_risk(risk: TableRisk | PolicyRisk, name: str) -> str:
    """The whole page; names of columns and tables are escaped, and nothing else of the data is in it."""
    tables = [_shown(risk, "Table")] if isinstance(risk, TableRisk) else [_shown(risk.source, "Source")]
    if isinstance(risk, PolicyRisk) and risk.release is not None:
        tables.append(_shown(risk.release, "Release"))
    note = risk.note if isinstance(risk, PolicyRisk) else None
    return template("risk.html.j2").render(name=name, tables=tables, note=note, made_by=__version__)


def _shown(risk: TableRisk, title: str) -> dict[str, Any]:
    """A table's risk, with its pictures, and shares that the result does not hold."""
    name = title.lower()
    return {
        "id": name,
        "title": title,
        "risk": risk,
        "alone": risk.sample_uniques / max(1, risk.members),
        "special": 0.0 if risk.suda is None else risk.suda.rows / max(1, risk.rows),
        "sizes": _sizes(risk, name),
        "contributions": None if risk.suda is None else _contributions(risk.suda.contribution_by_column, name),
        "subsets": most_distinct(risk.subsets or (), SUBSETS),
    }


def _sizes(risk: TableRisk, name: str) -> Markup:
    """Draw the share of the members by the size of their class."""
    shares = {
        f"{bucket_label(one.lower, one.upper)} {risk.member}{'' if one.upper == 1 else 's'}": one.rows / risk.members
        for one in risk.sizes
    }
    return _picture(f"{risk.member.capitalize()}s by the size of their class", shares, f"sizes-{name}-")


def _contributions(shares: Mapping[str, float], name: str) -> Markup:
    """Draw the share of the scores that each column is part of."""
    ordered = {column: share / 100 for column, share in sorted(shares.items(), key=lambda one: -one[1])}
    return _picture("Share of the SUDA scores by column", ordered, f"suda-{name}-")


def _picture(title: str, shares: Mapping[str, float], key: str) -> Markup:
    bars = [share_bar(label, share) for label, share in shares.items()]
    return Markup(draw_bars(title, f"{list_bars(bars) or 'nothing'}.", bars, key))
