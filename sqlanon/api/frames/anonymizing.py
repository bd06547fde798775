"""Anonymizes data that a program holds: a run like any other, whose release stays in memory."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb

from sqlanon.api.frames.loading import DataKind, kind_of, load, read_dates
from sqlanon.api.frames.result import RELEASED, Anonymized
from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.duckdb.lending import lent
from sqlanon.engines.embedded import url_of_file
from sqlanon.engines.read_options import POLICY_OPTIONS
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy
from sqlanon.policy.document import Document, read_document
from sqlanon.policy.loading import build_document, read_policy
from sqlanon.policy.writer import policy_text
from sqlanon.results.run_result import RunResult
from sqlanon.runs.sources import run
from sqlanon.sql import Relation
from sqlanon.support.documents import refuse_odd_data
from sqlanon.work.journal import Observer

SOURCE = "data"  # the name of a frame's table


def anonymize(
    data: Any,
    policy: Policy | Mapping[str, Any] | str | os.PathLike[str],
    *,
    table: str | None = None,
    options: EngineOptions | None = None,
    observer: Observer | None = None,
    levels: Mapping[str, int] | None = None,
    time_limit: float | None = None,
) -> Anonymized:
    """Anonymize data by a policy; the release is verified like that of any run, and stays in memory.

    data: a pandas or polars DataFrame, an Arrow table, the path of a data file, or, with `table`, a DuckDB connection
        or an SQLAlchemy engine, whose database does the work.
    policy: a `Policy`, a mapping of the same grammar, the path of a policy file, or a policy as YAML text. What it says
        of source and release does not count, but for the reading of a data file: `header`, `decimal` and the like; and
        its `dates`, and `types` that are dates, by which texts of a frame are read too.
    table: the table of a connection or an engine, as SQL writes it.
    options, observer, levels, time_limit: see `run`.

    Raises PolicyError for data that can't be released value by value as it is, such as a column of mixed types, and
    what `run` raises. Nothing of the data is left on disk.
    """
    kind = kind_of(data)
    if kind.has_tables != (table is not None):
        wanted = "names no table: give table=…" if kind.has_tables else "is one table: leave `table` out"
        raise PolicyError(f"The data, {kind.value}, {wanted}.")
    name = f":memory:sqlanon-{secrets.token_hex(8)}"
    memory, url = duckdb.connect(name), url_of_file(name)
    try:
        document, base = _document(policy)
        with _source(data, kind, table, memory, url) as (source, texts):
            placed = _placed(document, base, source, url, keeps_catalog=kind is DataKind.SQLALCHEMY)
            if kind.is_frame:
                read_dates(url, SOURCE, placed, texts, _reading_of(document.data.get("source")))
            if not placed.algorithm.recodes.makes_classes:
                raise PolicyError(
                    f"algorithm: {placed.algorithm.name} makes no classes, and data in memory keeps no catalog with"
                    " what was released: load the data into a database, and run the policy there."
                )
            result = run(placed, options=options, observer=observer, levels=levels, time_limit=time_limit)
        memory.execute(f"DROP TABLE IF EXISTS {SOURCE}")
        assert isinstance(result, RunResult)
        return Anonymized(result, placed, memory, url, data if kind is DataKind.PANDAS else None)
    except BaseException:
        memory.close()
        raise


@contextlib.contextmanager
def _source(
    data: Any, kind: DataKind, table: str | None, memory: duckdb.DuckDBPyConnection, url: str
) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """The data as the source of a policy, and a frame's columns of texts; a frame becomes a table in memory."""
    if kind is DataKind.FILE:
        yield {"file": str(Path(data).absolute())}, []
    elif kind is DataKind.DUCKDB:
        assert table is not None
        with lent(data) as lent_url:
            yield {"url": lent_url, "table": table}, []
    elif kind is DataKind.SQLALCHEMY:
        yield {"url": _url_of(data), "table": table}, []
    else:
        texts = load(data, kind, memory, SOURCE)
        yield {"url": url, "table": str(Relation(SOURCE))}, texts


def _url_of(engine: Any) -> str:
    """The URL of an SQLAlchemy engine's database, as this program writes it."""
    backend, database = engine.url.get_backend_name(), engine.url.database
    dialect = find_dialect(f"{backend}://")
    if dialect is None or (dialect.is_embedded and database in (None, "", ":memory:")):
        raise PolicyError(
            f"The SQLAlchemy engine's database ({backend}) can't be opened here: PostgreSQL can, and a DuckDB file. Of "
            "a DuckDB database in memory give the connection."
        )
    return str(engine.url.set(drivername=backend).render_as_string(hide_password=False))


def _placed(
    document: Document,
    base: Path | None,
    source: Mapping[str, Any],
    url: str,
    *,
    keeps_catalog: bool,
) -> Policy:
    """The policy for this source, with a release in memory, and its catalog there unless it keeps its own."""
    if not isinstance(document.data, dict):
        raise PolicyError("The policy must be a mapping with the keys attributes and privacy.")
    places: dict[str, Any] = {"source": dict(source), "release": {"url": url, "table": RELEASED}}
    if "file" in source:
        places["source"] |= _reading_of(document.data.get("source"))
    if not keeps_catalog:
        places["catalog"] = {"url": url}
    for part in places.values():
        for key in part.keys() & {"url", "file"}:
            part[key] = part[key].replace("$", "$$")  # it is no reference to the environment
    placed = dataclasses.replace(document, data={**document.data, **places})
    return build_document(placed, base)


def _reading_of(source: Any) -> dict[str, Any]:
    """The options of a policy's source by which a file is read."""
    return {key: source[key] for key in POLICY_OPTIONS if key in source} if isinstance(source, dict) else {}


def _document(policy: Policy | Mapping[str, Any] | str | os.PathLike[str]) -> tuple[Document, Path | None]:
    """The policy as plain data, and the directory that the files it names are relative to."""
    if isinstance(policy, Policy):
        return read_document(policy_text(policy)), None
    if isinstance(policy, Mapping):
        refuse_odd_data(policy)
        return Document(copy.deepcopy(dict(policy))), None
    if isinstance(policy, str) and "\n" in policy:
        return read_document(policy), None
    return read_document(read_policy(policy)), Path(policy).parent
