"""Spark SQL, as it is known before anybody connects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from sqlanon.engines.dialects import Capability, Dialect
from sqlanon.engines.spark.quoting import with_backticks
from sqlanon.engines.spark.urls import address_of


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
