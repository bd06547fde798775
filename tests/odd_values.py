"""Values that nobody means, and documents changed by them: what programs are given by mistake or on purpose."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

TEXTS = [
    *("", " ", "\t", "*", "'", '"', "\\", "%s", "$$", "${", "${NOBODY_SET_THIS}", "a.b.c.d", "--", ";", "\0", "\ud800"),
    *("\udfff\ud800", "é" * 70, "😀", "\u202e", "\ufeff", "x" * 5000, "null", "no", "~", "NaN", "-0", "1e999", "../.."),
    *(
        "file:///etc/passwd",
        "duckdb:///",
        "postgresql://",
        "s3://b",
        "/dev/null",
        "/",
        "duckdb:///:memory:",
        "[",
        "a\nb",
    ),
]
NUMBERS = [0, -1, 1, 2**31, 2**63, 10**400, -(10**400), 1e308, 5e-324, -0.0, float("nan"), float("inf"), 1e10]
OTHERS = [None, True, False, [], {}, [[]], {"": None}, [None], {"model": {}}, ["\ud800"], {"\ud800": "\ud800"}]

odd_values = st.one_of(st.sampled_from([*TEXTS, *NUMBERS, *OTHERS]), st.text(max_size=5), st.integers(), st.floats())


def paths(data: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of plain data, its own first."""
    yield above
    if len(above) == 8:
        return
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, part in inside:
        yield from paths(part, (*above, key))


@st.composite
def mutated(draw: st.DrawFn, data: dict[str, Any], most: int = 3) -> dict[str, Any]:
    """The data with a few parts replaced, left out, named otherwise or nested deep."""
    changed = copy.deepcopy(data)
    for _ in range(draw(st.integers(1, most))):
        *above, key = draw(st.sampled_from([path for path in paths(changed) if path]))
        place: Any = changed
        for part in above:
            place = place[part]
        _change(draw, place, key)
        if not changed:
            break
    return changed


def _change(draw: st.DrawFn, place: Any, key: Any) -> None:
    """Change one part of a mapping or list in place."""
    what = draw(st.sampled_from(["replace", "leave out", "rename", "nest"]))
    if what == "leave out":
        del place[key]
    elif what == "rename" and isinstance(place, dict):
        place[draw(st.sampled_from(TEXTS))] = place.pop(key)
    elif what == "nest":
        deep: Any = place[key]
        for _ in range(draw(st.sampled_from([1, 70, 200]))):
            deep = [deep]
        place[key] = deep
    else:
        place[key] = draw(odd_values)
