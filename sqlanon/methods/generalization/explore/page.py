"""The page of a trade-off: one HTML file with every candidate, to look at and to choose from. It loads nothing."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from markupsafe import Markup

from sqlanon import __version__
from sqlanon.methods.generalization.lattice.refusal import name_in_levels
from sqlanon.report.html import template
from sqlanon.runs.tradeoffs.tradeoff import LATTICE, Tradeoff, TradeoffCandidate

LISTED = 100  # candidates of the front that the table lists


def render_explore(
    tradeoff: Tradeoff, command: str = "sqlanon run policy.yml", commands: Mapping[str, str] | None = None
) -> str:
    """The whole page; what comes from policy and table is escaped.

    command: what releases the policy, to which the page adds `--levels`.
    commands: what releases each of several policies, by its name.
    """
    program = _file("page.js")
    return template("page.html.j2", __package__).render(
        tradeoff=tradeoff,
        title=_title(tradeoff.source),
        by_levels=tradeoff.kind == LATTICE,
        front=[(place, _name(tradeoff, tradeoff.candidates[place])) for place in tradeoff.front[:LISTED]],
        data=Markup(_data(tradeoff, command, commands or {})),
        program=Markup(program),
        program_digest=_digest(program),
        more_style=Markup(_file("page.css")),
        made_by=__version__,
    )


def _title(source: str) -> str:
    """The table as SQL writes it, or the name of a file without the place on its owner's disk."""
    return Path(source).name if Path(source).is_absolute() else source


def _name(tradeoff: Tradeoff, candidate: TradeoffCandidate) -> str:
    """A candidate in few words."""
    if candidate.levels is None:
        k = None if candidate.k is None else f"k = {candidate.k:,}"
        return ", ".join(part for part in (candidate.policy, k) if part is not None)
    return ", ".join(f"{column.name} {level}" for column, level in zip(tradeoff.columns, candidate.levels, strict=True))


def _data(tradeoff: Tradeoff, command: str, commands: Mapping[str, str]) -> str:
    """The block that the page's program reads: JSON of ASCII characters, without any that HTML has a meaning for."""
    data: dict[str, Any] = tradeoff.as_json() | {
        "command": command,
        "commands": dict(commands),
        "names_in_levels": [name_in_levels(column.name) for column in tradeoff.columns],
    }
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _digest(program: str) -> str:
    """The digest by which the page's policy of security lets this program run, and no other."""
    return "sha256-" + base64.b64encode(hashlib.sha256(program.encode()).digest()).decode()


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
