"""Columns of labels as columns to compute with: least and greatest value, members, whether NULL is among them."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from sqlanon.api.labels.parsing import LabelKind, Region, parse_label
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Recodes, Show
from sqlanon.results.run_result import QuasiIdentifier, RunResult

LABELS = "sqlanon_labels"


_LABELLED = (Recodes.REGIONS, Recodes.LEVELS, Recodes.CUTS, Recodes.INTERVALS)


_GROUPED = (None, "intervals", "date")  # kinds of hierarchies whose labels name the ends of their groups


_TYPES: tuple[tuple[LabelKind, re.Pattern[str]], ...] = (
    ("timestamp", re.compile(r"timestamp")),
    ("date", re.compile(r"date$")),
    ("number", re.compile(r"u?(tiny|small|big|huge)?int|integer|double|real|float|numeric|decimal")),
    ("text", re.compile(r"varchar|text|char")),
)


"""The attribute of a pandas DataFrame that says which of its columns hold labels, and of which kind."""


_KINDS: tuple[LabelKind, ...] = ("number", "date", "timestamp", "text")


_TIME = re.compile(r"\d \d\d:\d\d:\d\d")


def read_labels(frame: Any, columns: Sequence[str] | Mapping[str, LabelKind] | None = None) -> Any:
    """Add to a released table what the labels of some columns say, as columns that one can compute with.

    frame: a pandas or polars DataFrame, as `read_csv` or `read_parquet` gives it, or what `anonymize` returns.
    columns: the names of columns of labels, with their kinds (`number`, `date`, `timestamp`, `text`) where these are
        to be sure of; by names alone, a column is of the first kind that all of its labels are of, and of timestamps
        only if one of them holds a time of day. They need not be named of what `anonymize` returns, which knows them
        (`labels`), nor of the frame of its `df()`.

    Every such column stays, and `<name>_min` and `<name>_max` are added: the ends of the region, empty where the label
    names none; floats for numbers, timestamps (in UTC) for dates. An upper end of a hierarchy's group, such as 30 of
    `[20-30)`, is not in the group; a day of timestamps is such a group. Of texts, `<name>_values` lists the members,
    and is empty for ranges of texts. Where a label says that NULL may be behind it, `<name>_null` is true. The frame
    that was given is not changed.

    Raises PolicyError for a column that is not there, is there already, or holds what is no label of its kind; what the
    cell holds is not in the message. Source of the grammar: docs/labels.md.
    """
    if columns is None:
        frame, columns = _known(frame)
    library = _library(frame)
    names = list(frame.columns)
    added: dict[str, list[Any]] = {}
    kinds: dict[str, LabelKind] = {}
    for name in columns:
        if name not in names:
            raise PolicyError(f"The table has no column '{name}'; its columns are: {', '.join(map(str, names))}.")
        labels = [_label(cell) for cell in frame[name].to_list()]
        kind = columns[name] if isinstance(columns, Mapping) else _kind_of(labels)
        regions = _parsed(name, labels, kind)
        for suffix, values in _parts(regions, kind).items():
            key = f"{name}_{suffix}"
            if key in names:
                raise PolicyError(f"The table has a column '{key}' already; rename it, or leave '{name}' out.")
            added[key], kinds[key] = values, kind
    return library(frame, added, kinds)


def _known(frame: Any) -> tuple[Any, Mapping[str, LabelKind]]:
    """The frame of a release, and those of its columns of labels that are still there."""
    if hasattr(frame, "labels") and hasattr(frame, "df"):
        return frame.df(), frame.labels
    known = getattr(frame, "attrs", {}).get(LABELS)
    if known is None:
        raise PolicyError(
            "Nothing says which columns of this table hold labels: name them, as in read_labels(frame, ['age']); those"
            " of a release in memory are release.labels."
        )
    return frame, {name: kind for name, kind in known.items() if name in list(frame.columns)}


def _label(cell: Any) -> str | None:
    """A cell as a label: NULL is None, or what pandas has in its place."""
    if cell is None or cell != cell or str(cell) in ("<NA>", "NaT"):
        return None
    return str(cell)  # a number, date or timestamp that nothing was generalized of, so that the column has a type


def _kind_of(labels: Iterable[str | None]) -> LabelKind:
    """The first kind that all labels are of; text if there is none."""
    distinct = {label for label in labels if label not in (None, "*", "NULL")}
    for kind in ("number", "date"):
        if distinct and all(_is_of(label, kind) for label in distinct):
            has_times = kind == "date" and any(_TIME.search(label or "") for label in distinct)
            return "timestamp" if has_times else kind
    return "text"


def _is_of(label: str | None, kind: LabelKind) -> bool:
    try:
        parse_label(label, kind)
    except ValueError:
        return False
    return True


def _parsed(name: str, labels: Sequence[str | None], kind: LabelKind) -> list[Region]:
    """The region of each row; labels repeat, so that each is read once."""
    if kind not in _KINDS:
        raise PolicyError(f"Column '{name}': '{kind}' is no kind of labels; there are {', '.join(_KINDS)}.")
    known: dict[str | None, Region] = {}
    for row, label in enumerate(labels):
        if label not in known:
            try:
                known[label] = parse_label(label, kind)
            except ValueError as error:
                raise PolicyError(
                    f"Column '{name}', row {row}: what stands there is no label of the kind {kind} ({error}). Labels of"
                    " masks and of your own groups say no more than they show: leave such a column out."
                ) from None
    return [known[label] for label in labels]


def _parts(regions: Sequence[Region], kind: LabelKind) -> dict[str, list[Any]]:
    """The columns that are added, by the ends of their names."""
    parts: dict[str, list[Any]] = {
        "min": [region.low for region in regions],
        "max": [region.high for region in regions],
    }
    if kind == "text":
        parts["values"] = [None if region.values is None else list(region.values) for region in regions]
    return parts | {"null": [region.null for region in regions]}


def _library(frame: Any) -> Any:
    """Return the function that adds columns to a frame of this library."""
    match type(frame).__module__.partition(".")[0]:
        case "pandas":
            return _add_to_pandas
        case "polars":
            return _add_to_polars
    raise PolicyError(f"read_labels takes a pandas or polars DataFrame, not {type(frame).__name__}.")


def _add_to_pandas(frame: Any, added: Mapping[str, list[Any]], kinds: Mapping[str, LabelKind]) -> Any:
    pandas = importlib.import_module("pandas")

    def series(key: str, values: list[Any]) -> Any:
        if key.endswith("_null"):
            return pandas.Series(values, index=frame.index, dtype=bool)
        if key.endswith("_values"):
            return pandas.Series(values, index=frame.index, dtype=object)
        if kinds[key] in ("date", "timestamp"):  # nanoseconds end in the year 2262
            return pandas.Series(values, index=frame.index, dtype="datetime64[us]")
        return pandas.Series(values, index=frame.index, dtype=float if kinds[key] == "number" else object)

    return frame.assign(**{key: series(key, values) for key, values in added.items()})


def _add_to_polars(frame: Any, added: Mapping[str, list[Any]], kinds: Mapping[str, LabelKind]) -> Any:
    polars = importlib.import_module("polars")
    timestamp = polars.Datetime("us")
    ends = {"number": polars.Float64, "date": timestamp, "timestamp": timestamp, "text": polars.String}

    def series(key: str, values: list[Any]) -> Any:
        if key.endswith("_null"):
            return polars.Series(key, values, dtype=polars.Boolean)
        if key.endswith("_values"):
            return polars.Series(key, values, dtype=polars.List(polars.String))
        return polars.Series(key, values, dtype=ends[kinds[key]])

    return frame.with_columns([series(key, values) for key, values in added.items()])


def labels_of(result: RunResult, policy: Policy) -> dict[str, LabelKind]:
    """Name the columns of a release whose labels `read_labels` reads, each with the kind of its labels.

    Columns of masks, of a csv or mapping, of single cells and of centres are not among them.
    """
    if policy.algorithm.recodes not in _LABELLED:
        return {}
    return dict(_labelled(result.quasi_identifiers or ()))


def _labelled(columns: Sequence[QuasiIdentifier]) -> Iterator[tuple[str, LabelKind]]:
    for column in columns:
        kind = next((kind for kind, pattern in _TYPES if pattern.match(column.type.lower())), None)
        if kind is not None and column.show == Show.LABEL and column.hierarchy in _GROUPED:
            yield column.name, kind
