"""Numbers of things in words."""

from __future__ import annotations

from sqlanon.support.quantities import quantity, rows_hold


def test_one_is_no_plural() -> None:
    assert [quantity(count, "row") for count in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]
    assert [quantity(count, "class", "classes") for count in (1, 2)] == ["1 class", "2 classes"]
    assert [rows_hold(count) for count in (1, 2)] == ["1 row holds", "2 rows hold"]
