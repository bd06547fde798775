"""A release in a notebook: the verdict, and the first rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from sqlanon.results.measures import ModelResult
from sqlanon.results.run_result import RunResult

_TABLE = Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>")


def result_html(result: RunResult, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A part of a page, every text escaped; `result` is that of the run."""
    release = result.release
    suppressed = f", {release.suppressed:,} left out" if release.suppressed else ""
    models = ", ".join(_model(one) for one in result.models)
    head = Markup("<p>Verified: {}. {:,} rows in {:,} {} of {:,} rows or more{}.</p>").format(
        models, release.rows, release.classes, release.class_words[1], release.min_class_size, suppressed
    )
    heading = _joined(Markup("<th>{}</th>").format(name) for name in names)
    body = _joined(
        Markup("<tr>{}</tr>").format(
            _joined(Markup("<td>{}</td>").format("" if value is None else value) for value in row)
        )
        for row in rows
    )
    rest = release.rows - len(rows)
    more = Markup("<p>… and {:,} rows more</p>").format(rest) if rest > 0 else ""
    return head + _TABLE.format(heading, body) + more


def _joined(parts: Any) -> Markup:
    return Markup("").join(parts)


def _model(result: ModelResult) -> str:
    parameters = ", ".join(f"{name} {value}" for name, value in result.parameters.items())
    return f"{result.model} ({parameters})"
