"""The release of data that a program held: in forms that programs compute with, and in notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from sqlanon.api.frames.loading import restored
from sqlanon.api.labels.label_columns import LABELS, labels_of
from sqlanon.api.labels.parsing import LabelKind
from sqlanon.errors import SqlanonError
from sqlanon.policy import Policy, Role
from sqlanon.report.queries import run_report
from sqlanon.results.measures import ModelResult
from sqlanon.results.run_result import RunResult
from sqlanon.sql import Identifier, Relation, renderer
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    import pyarrow as pa

RELEASED = "released"  # the name of the released table


SHOWN_ROWS = 10


_WHOLE = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")} | {"INTEGER", "UINTEGER"}


_TABLE = Markup("<table><thead><tr>{}</tr></thead><tbody>{}</tbody></table>")


class Anonymized:
    """A verified release in memory, and what the run came to. It ends with `close`, or when nothing refers to it.

    result: what `run` returns.
    policy: the policy of the run, whose places are in memory.
    """

    def __init__(
        self,
        result: RunResult,
        policy: Policy,
        connection: duckdb.DuckDBPyConnection,
        url: str,
        source: pd.DataFrame | None,
    ) -> None:
        self.result = result
        self.policy = policy
        self._connection = connection
        self._url = url
        self._types = {} if source is None else _kept_types(policy, source)

    def as_json(self) -> dict[str, Any]:
        """One object of plain values: the result of the run."""
        return self.result.as_json()

    def df(self) -> pd.DataFrame:
        """The released rows as a pandas DataFrame; columns that were kept have the types of the source.

        Whole numbers with gaps are of a nullable type, such as Int64; decimal numbers are objects of `Decimal`.
        """
        _require("pandas")
        columns, frame = self._columns(), self._read().df()
        gaps = [name for name, kind in columns if kind in _WHOLE and frame[name].dtype.kind == "f"]
        arrays = self._read().fetchnumpy() if gaps else {}
        exact = {name: self._objects(name) for name, kind in columns if self._is_exact(name, kind)}
        released: pd.DataFrame = restored(frame, {name: arrays[name] for name in gaps}, exact, self._types)
        released.attrs[LABELS] = self.labels
        return released

    @property
    def labels(self) -> dict[str, LabelKind]:
        """The columns that show labels to compute with, each with their kind; see `read_labels`."""
        return labels_of(self.result, self.policy)

    def pl(self) -> pl.DataFrame:
        """The released rows as a polars DataFrame."""
        _require("polars")
        import polars as pl

        frame = pl.from_arrow(self.arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def arrow(self) -> pa.Table:
        """The released rows as an Arrow table."""
        _require("pyarrow")
        return self._connection.sql(_rows()).to_arrow_table()

    def report(self) -> str:
        """The report of the run, one HTML page that loads nothing."""
        return run_report(self.result.run, policy=self.policy)

    def close(self) -> None:
        """Forget the release."""
        self._connection.close()

    def __enter__(self) -> Anonymized:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        release = self.result.release
        return (
            f"<Anonymized: {quantity(release.rows, 'row')} in {release.classes:,} {release.class_words[1]}, verified>"
        )

    def _repr_html_(self) -> str:
        """The verdict and the first rows, for notebooks."""
        rows = self._connection.execute(_rows(limit=SHOWN_ROWS)).fetchall()
        return result_html(self.result, [name for name, _ in self._columns()], rows)

    def _is_exact(self, name: str, kind: str) -> bool:
        """Tell whether pandas has no type for a column's values, or the source held them as objects."""
        had_objects = str(self._types.get(name)) == "object" and kind != "VARCHAR"
        return kind.startswith("DECIMAL(") or kind in ("HUGEINT", "UHUGEINT") or had_objects

    def _objects(self, name: str) -> list[Any]:
        """The values of a column, as objects of Python."""
        rows = self._connection.execute(_rows(Identifier(name))).fetchall()
        return [value for (value,) in rows]

    def _read(self) -> duckdb.DuckDBPyConnection:
        return self._connection.execute(_rows())

    def _columns(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self._connection.execute(f"DESCRIBE {RELEASED}").fetchall()]


def _rows(column: Identifier | None = None, limit: int | None = None) -> str:
    """The statement that reads the released rows, or the first ones, or a column."""
    return renderer("duckdb")("api/frames/select_rows", table=Relation(RELEASED), column=column, limit=limit).text


def _kept_types(policy: Policy, source: pd.DataFrame) -> dict[str, Any]:
    """The types of the columns whose values a release keeps."""
    kept = (name for name, one in policy.attributes.items() if one.role in (Role.SENSITIVE, Role.INSENSITIVE))
    return {name: source[name].dtype for name in kept}


def _require(library: str) -> None:
    """Raise SqlanonError where a library is not installed that the caller asked for."""
    import importlib.util

    needed = [library, "pyarrow"] if library == "polars" else [library]
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise SqlanonError(f"This needs {' and '.join(missing)}: pip install {' '.join(missing)}.")


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
