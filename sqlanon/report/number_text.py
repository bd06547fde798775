"""Numbers as a report writes them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.results.measures import SizeBucket

UNKNOWN = "\N{EN DASH}"


def whole(value: int | None) -> str:
    """A count, with commas."""
    return UNKNOWN if value is None else f"{value:,}"


def decimal(value: float | None) -> str:
    """A number of at most four significant digits after the point, or a whole one as it is."""
    if value is None:
        return UNKNOWN
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 100 else f"{value:.4g}"


def percent(share: float | None) -> str:
    """A share from 0 to 1; what is not nothing never looks like it."""
    if share is None:
        return UNKNOWN
    if 0 < share < 0.0001:
        return "< 0.01 %"
    if share >= 0.01:
        return f"{100 * share:.1f}".removesuffix(".0") + " %"
    return f"{100 * share:.2g} %"


def share_above(buckets: Sequence[SizeBucket], size: int) -> float:
    """The share of the rows in classes of fewer than `size` rows: those whose risk is above 1/size.

    Exact for sizes at which a bucket begins: 1, 2, 5, 10, ...
    """
    rows = sum(bucket.rows for bucket in buckets)
    small = sum(bucket.rows for bucket in buckets if bucket.upper < size)
    return small / rows if rows else 0.0


def bucket_label(low: int, high: int) -> str:
    """The class sizes of a bucket."""
    return f"{low:,}" if low == high else f"{low:,}\N{EN DASH}{high:,}"
