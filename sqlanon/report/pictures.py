"""The pictures of a report: SVG without a value of the data, each with its text alternative."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from sqlanon.report.drawing.bars import draw_bars, list_bars, share_bar
from sqlanon.report.drawing.tradeoff import draw_tradeoff
from sqlanon.report.drawing.tree import draw_tree
from sqlanon.report.material import Material
from sqlanon.report.number_text import bucket_label, percent, share_above
from sqlanon.results.measures import Distribution, SizeBucket
from sqlanon.results.run_result import RunResult
from sqlanon.support.methods import method_of

SMALL = 370.0  # the width of pictures that stand side by side
THRESHOLDS = (2, 5, 10, 20, 50, 100)  # class sizes; the risk is one in so many


def class_sizes(result: RunResult) -> Markup:
    """The share of rows, or of persons, by the size of their class, before and after."""
    before, after = result.source.class_sizes, result.release.class_sizes
    bounds = sorted({(one.lower, one.upper) for one in [*(before or ()), *after]})
    shares = [_shares(sizes) for sizes in (before or (), after)]
    bars = []
    for lower, upper in bounds:
        was, now = (share.get(lower, 0.0) for share in shares)
        label = bucket_label(lower, upper) + f" {result.member}" + ("" if upper == 1 else "s")
        bars.append(share_bar(label, now, was if before is not None else None))
    text = list_bars(bar for bar in bars if bar.after)
    title = f"{result.member.capitalize()}s by the size of their class"
    return Markup(draw_bars(title, f"After: {text or 'no class'}.", bars, "sizes-"))


def _shares(buckets: Sequence[SizeBucket]) -> dict[int, float]:
    rows = sum(bucket.rows for bucket in buckets)
    return {bucket.lower: bucket.rows / rows for bucket in buckets if rows}


def risks(result: RunResult) -> Markup:
    """The share of rows, or of persons, whose risk is above some thresholds, before and after."""
    before, after = result.source.class_sizes, result.release.class_sizes
    bars = [
        share_bar(f"above {percent(1 / size)}", share_above(after, size), share_above(before, size) if before else None)
        for size in THRESHOLDS
    ]
    members = f"{result.member}s"
    title = f"{members.capitalize()} by their risk to be picked"
    return Markup(draw_bars(title, f"Share of the released {members}: {list_bars(bars)}.", bars, "risk-"))


def losses(columns: Mapping[str, float], name: str) -> Markup:
    """Draw the share of its information that each column lost; `name` begins the ids."""
    bars = [share_bar(column, loss) for column, loss in columns.items()]
    return Markup(draw_bars("Information lost, by column", f"{list_bars(bars)}.", bars, name))


def distribution(column: Distribution, name: str) -> Markup:
    """The shares of rows with some values of a column, before and after, or before where nothing else is known."""
    bars = [
        share_bar(bar.label, bar.before) if bar.after is None else share_bar(bar.label, bar.after, bar.before)
        for bar in column.bars
    ]
    text = ", ".join(
        f"{bar.label} {bar.before_text + ' to ' if bar.before_text else ''}{bar.after_text}" for bar in bars
    )
    full = max([share for bar in bars for share in (bar.after, bar.before or 0.0)], default=0.0) or 1.0
    return Markup(draw_bars(f"Rows by {column.name}", f"{text}.", bars, name, width=SMALL, full=full))


def tree(material: Material) -> Markup | None:
    """The first levels of the partition tree, where the catalog holds it."""
    return None if material.tree is None else Markup(draw_tree(material.tree, "tree-"))


def tradeoff(material: Material) -> Markup | None:
    """Draw the costs of several k, where several were tried."""
    if len({point.k for point in material.points}) < 2:
        return None
    return Markup(draw_tradeoff(material.points, "tradeoff-"))


@dataclass(frozen=True)
class SearchPicture:
    """A picture of what a search looked at, with its caption."""

    drawn: Markup
    caption: str


def search(result: RunResult) -> SearchPicture | None:
    """Draw what the search looked at, as its method does; None where it draws nothing."""
    method = method_of(result.algorithm.name)
    if method is None or method.search_picture is None:
        return None
    picture: SearchPicture | None = method.load(method.search_picture)(result)
    return picture
