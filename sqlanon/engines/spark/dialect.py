"""Spark SQL, as it is known before anybody connects: its URLs, quoted names and literals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import parse_qsl

from sqlanon.engines.dialects import CAPABLE, Capability, Dialect
from sqlanon.errors import PolicyError

_ELSEWHERE = Capability(
    "Spark writes files where its executors are, and only tools of that place let a directory take another one's place"
    " in one step; name a table for the release, or run Spark on this machine (spark+local://)."
)


_CORES = re.compile(r"[1-9]\d{0,3}|\*", re.ASCII)


_WORKERS = re.compile(r"\d{1,4},\d{1,4},\d{1,7}", re.ASCII)


_KEPT = re.compile(
    r"""(?P<comment>--[^\n]*|/[*].*?[*]/)|(?P<literal>\br'[^']*'|'(?:[^']|'')*')|"(?P<name>(?:[^"]|"")*)\"""", re.DOTALL
)


class SparkSQL(Dialect):
    """Spark, local, as a cluster, or behind a Connect server. It keeps no catalog."""

    name = "spark"
    label = "Spark"
    schemes = ("spark", "spark+local", "spark+local-cluster", "sc")
    adapter = "sqlanon.engines.spark.engine:SparkEngine"
    publisher = "sqlanon.engines.spark.publishing:SparkPublisher"
    folds_case = True
    names_files = True
    writes_directories = True
    temporary = ("main", "temp")
    portable: ClassVar[Mapping[str, str]] = {
        "TINYINT": "int8",
        "SMALLINT": "int16",
        "INTEGER": "int32",
        "BIGINT": "int64",
        "FLOAT": "float32",
        "DOUBLE": "float64",
        "BOOLEAN": "boolean",
        "DATE": "date",
        "TIMESTAMP": "timestamp",
        "TIMESTAMP WITH TIME ZONE": "timestamptz",
        "VARCHAR": "text",
        "BINARY": "bytes",
    }
    types: ClassVar[Mapping[str, str]] = {kind: name for name, kind in portable.items()}
    settings: ClassVar[Mapping[str, str]] = {"spark.sql.ansi.enabled": "true"}
    zone_settings: ClassVar[Mapping[str, str]] = {"spark.sql.session.timeZone": "UTC"}
    spellings: ClassVar[Mapping[str, str]] = {
        "FLOAT8": "DOUBLE",
        "DOUBLE PRECISION": "DOUBLE",
        "REAL": "FLOAT",
        "TEXT": "STRING",
        "VARCHAR": "STRING",
        "HUGEINT": "DECIMAL(38, 0)",
        "TIMESTAMP WITH TIME ZONE": "TIMESTAMP_LTZ",  # before TIMESTAMP, as the first that fits is taken
        "TIMESTAMPTZ": "TIMESTAMP_LTZ",
        "TIMESTAMP": "TIMESTAMP_NTZ",  # the engine takes the bare word as the session is set
        "AS MATERIALIZED": "AS",  # Spark works a common table expression out at each use, or once if it sees fit
    }
    raw_literals = True
    has_infinite_days = False
    numbers_cells = True
    places_work_tables = True
    weighs_scans = True
    keeps_temporary_tables = True
    asked_together = 20

    @classmethod
    def text_for_others(cls, text: str) -> str:
        """Write names between backticks, as elsewhere "name" is a text."""
        return with_backticks(text)

    @classmethod
    def writes_here(cls, url: str) -> Capability:
        return address_of(url).writes_here

    lacks_recodings: ClassVar[Mapping[str, Capability]] = {
        "clusters": Capability("clusters and condensation are not carried out on Spark; copy the table to DuckDB."),
        "intervals": Capability(
            "ordered sets are not searched on Spark; copy the table to DuckDB or PostgreSQL, or choose mondrian."
        ),
        "cells": Capability(
            "single cells are neither suppressed nor generalized on Spark; copy the table to DuckDB or PostgreSQL."
        ),
        "noise": Capability("columns are not randomized on Spark; copy the table to DuckDB."),
        "rows": Capability("identifiers are not masked on Spark; copy the table to DuckDB or PostgreSQL."),
        "items": Capability("rules are not hidden on Spark; copy the table to DuckDB or PostgreSQL."),
    }
    counts_population = Capability("classes are not held against a population on Spark; copy both tables to DuckDB.")
    has_snapshots = Capability("Spark has no transactions: what is read more than once is copied first.")
    keeps_order = Capability("tables of Spark have no order in which rows are stored.")
    has_locks = Capability("Spark has no locks; those of the catalog's database stand in.")
    tells_other_types_apart = Capability(
        "Spark writes different values of this type as the same text: intervals, variants, and maps whose keys are of a"
        " nested type; use a view that has their fields as columns of simple types."
    )
    makes_pseudonyms = Capability(
        "pseudonyms are not made on Spark, whose plans, event logs and files of tables would hold the key; copy the"
        " table to DuckDB or PostgreSQL, or leave show out."
    )
    counts_persons = Capability(
        "persons are not counted on Spark; copy the table to DuckDB or PostgreSQL, or write subject: none."
    )
    relaxes_partitions = Capability(
        "is not offered on Spark, whose tasks grow sub-trees of their own; use strict, or copy the table to DuckDB or"
        " PostgreSQL."
    )
    settles_models = Capability(
        "a distance by costs out of a file is not measured on Spark, whose tasks have neither the file nor the solver;"
        " use another distance, or copy the table to DuckDB or PostgreSQL."
    )
    keeps_catalog = Capability("Spark cannot keep the catalog; name a database that can (catalog: {url: …}).")
    copies_rows = Capability(
        "rows are not carried over between Spark and another database; name a table where the source is, or a file."
    )
    has_transactions = Capability(
        "Spark's metastore changes one table at a time, so that readers would see one of two tables changed and the"
        " other not yet; choose layout: flat, and an algorithm that releases one table."
    )
    keeps_tables_private = Capability(
        "Spark's metastore knows no grants: whoever may read the files of a table reads it, so no figures of single"
        " rows are written there."
    )
    has_ranges = Capability("Spark has no types for ranges; use show: bounds.")
    has_procedures = Capability(
        "Spark has no procedures; `sqlanon freeze` makes a job, which `sqlanon job run` carries out, and --as sql and"
        " --as view are statements of Spark's."
    )
    reads_labels = Capability(
        "labels are not read back by a view of Spark's; `sqlanon.read_labels` reads those of a data frame, such as"
        " spark.table(…).toPandas()."
    )
    codes_columns = Capability(
        "subsets of columns and minimal sample uniques are not counted on Spark; copy the columns to DuckDB for that."
    )
    knows_words = Capability(
        "values are not held against word lists on Spark: names of people are known by the name of their column."
    )
    answers_questions = Capability(
        "questions are not answered of tables on Spark, which may change between the decision and the answer; copy the"
        " table to DuckDB or PostgreSQL."
    )
    has_ask_functions = answers_questions
    has_roles = Capability("roles are PostgreSQL's; the metastore of Spark decides who reads a table.")


@dataclass(frozen=True)
class SparkAddress:
    """The master of a classic session with its settings, or else the URL of a Connect server."""

    master: str | None = None
    settings: Mapping[str, str] | None = None
    remote: str | None = None

    @property
    def is_local(self) -> bool:
        """Tell whether Spark is at work on this machine alone."""
        return self.master is not None and self.master.startswith("local")

    @property
    def writes_here(self) -> Capability:
        """Capability of its sessions to write files of this machine."""
        return CAPABLE if self.is_local else _ELSEWHERE


def address_of(url: str) -> SparkAddress:
    """Read a URL; raises PolicyError, with the form that it should have, for one that names no session."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    if scheme == "sc":
        if not place.partition(";")[0].strip("/"):
            raise PolicyError("Write sc://host:15002, the host and the port of a Spark Connect server.")
        return SparkAddress(remote=url)
    settings = dict(parse_qsl(query, keep_blank_values=True))
    if wrong := next((name for name in settings if not name.startswith("spark.")), None):
        raise PolicyError(f"'{wrong}' is no setting of Spark: in its URL, names of settings begin with `spark.`.")
    place = place.rstrip("/")
    if scheme == "spark":
        if not place:
            raise PolicyError("Write spark://host:7077, the URL of the master.")
        return SparkAddress(f"spark://{place}", settings)
    if scheme == "spark+local":
        if not _CORES.fullmatch(place or "*"):
            raise PolicyError("Write spark+local://2, with the number of cores, or spark+local:// for all.")
        return SparkAddress(f"local[{place or '*'}]", settings)
    if not _WORKERS.fullmatch(place):
        raise PolicyError("Write spark+local-cluster://2,1,2048: executors, cores of each, megabytes of each.")
    return SparkAddress(f"local-cluster[{place}]", settings)


def bare(text: str) -> str:
    """Take out whatever is no word of a statement, and leave each word at its place."""
    return _KEPT.sub(lambda kept: (" " if kept["comment"] else "\x01") * len(kept[0]), text)


def with_backticks(text: str) -> str:
    """Write names as every session reads them, also one that takes what is between double quotes for a text."""
    return _KEPT.sub(lambda kept: kept[0] if kept["name"] is None else _in_backticks(kept["name"]), text)


def _in_backticks(name: str) -> str:
    return "`" + name.replace('""', '"').replace("`", "``") + "`"
