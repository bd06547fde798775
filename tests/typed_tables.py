"""Tables with a column of every type of an engine: name, type, and the value in row `i` of 12."""

from __future__ import annotations

import re
from collections.abc import Mapping

ROWS = 12

POSTGRES: Mapping[str, tuple[str, str]] = {
    "c_uuid": ("uuid", "md5(i::text)::uuid"),
    "c_moment": ("timestamptz", "'2020-01-01 10:00:00.5+02'::timestamptz + i * interval '1 hour'"),
    "c_local": ("timestamp", "'2020-01-01 10:00:00'::timestamp + i * interval '1 hour'"),
    "c_day": ("date", "date '2020-01-01' + i"),
    "c_before_christ": ("date", "date '0044-03-15 BC' + i"),
    "c_after_9999": ("date", "date '12020-01-01' + i"),
    "c_local_before": ("timestamp", "timestamp '0044-03-15 10:00 BC'"),
    "c_moment_before": ("timestamptz", "timestamptz '0044-03-15 10:00+00 BC'"),
    "c_time": ("time", "time '10:00:00.25' + i * interval '1 minute'"),
    "c_midnight": ("time", "'24:00:00'"),
    "c_zoned": ("timetz", "timetz '10:00:00+02' + i * interval '1 minute'"),
    "c_interval": ("interval", "make_interval(years => i, months => 2, days => -3, secs => 4.5)"),
    "c_jsonb": ("jsonb", "jsonb_build_object('a', i, 'b', E'x\"y\\nz')"),
    "c_json": ("json", "('{\"a\":  ' || i || '}')::json"),
    "c_numbers": ("int[]", "array[i, null, 2]"),
    "c_texts": ("text[]", "array['a,b', 'NULL', null, 'q\"' || i]"),
    "c_matrix": ("int[]", "array[[1, 2], [3, i]]"),
    "c_ids": ("uuid[]", "array[md5(i::text)::uuid]"),
    "c_inet": ("inet", "('10.0.0.' || i)::inet"),
    "c_subnet": ("inet", "('10.0.0.' || i || '/24')::inet"),
    "c_cidr": ("cidr", "('10.0.' || i || '.0/24')::cidr"),
    "c_mac": ("macaddr", "('08:00:2b:01:02:' || lpad(i::text, 2, '0'))::macaddr"),
    "c_range": ("int4range", "int4range(i, i + 3)"),
    "c_numbers_from": ("numrange", "numrange(i + 0.5, null)"),
    "c_since": ("tstzrange", "tstzrange('2020-01-01 10:00+02'::timestamptz + i * interval '1 hour', null)"),
    "c_ranges": ("int4multirange", "int4multirange(int4range(i, i + 3), int4range(i + 7, i + 9))"),
    "c_money": ("money", "(1234.5 + i)::numeric::money"),
    "c_bit": ("bit(5)", "i::bit(5)"),
    "c_bits": ("varbit", "i::bit(7)::varbit"),
    "c_xml": ("xml", "('<a>' || i || '</a>b')::xml"),
    "c_words": ("tsvector", "to_tsvector('simple', 'a fat cat ' || i)"),
    "c_query": ("tsquery", "('fat' || i || ' & cat')::tsquery"),
    "c_point": ("point", "point(i, 0.1)"),
    "c_box": ("box", "box(point(0, 0), point(i, 1))"),
    "c_mood": ("mood", "(CASE WHEN i % 2 = 0 THEN 'sad' ELSE 'it''s, ok' END)::mood"),
    "c_feeling": ("feeling", "'sad'"),
    "c_positive": ("positive", "i + 1"),
    "c_object": ("object", "jsonb_build_object('z', i)"),
    "c_pair": ("pair", "row(i, 'x,y', timestamptz '2020-01-01 10:00:00+02')::pair"),
    "c_bytes": ("bytea", "decode(md5(i::text), 'hex')"),
    "c_letters": ("bytea", "convert_to(E'ab\\\\c' || i, 'UTF8')"),
    "c_loose": ("citext", "'AbC' || i % 3"),
    "c_free": ("numeric", "CASE WHEN i % 2 = 0 THEN 1.5 ELSE 1.50 + i END"),
    "c_decimal": ("numeric(10,3)", "i + 0.5"),
    "c_single": ("real", "i * 0.1::real"),
    "c_double": (
        "float8",
        "(CASE i % 4 WHEN 0 THEN 'NaN' WHEN 1 THEN '-0' WHEN 2 THEN 'Infinity' ELSE '1e15' END)::float8",
    ),
    "c_truth": ("boolean", "i % 2 = 0"),
    "c_small": ("smallint", "i"),
    "c_big": ("bigint", "9223372036854775800 + i % 5"),
    "c_text": (
        "text",
        "CASE i WHEN 0 THEN null WHEN 1 THEN '' WHEN 2 THEN E'a,\"b\n' WHEN 3 THEN 'NULL' ELSE ' x ' || i END",
    ),
    "c_padded": ("char(5)", "'ab' || i % 3"),
    "c_short": ("varchar(9)", "'v' || i"),
    "c_letter": ('"char"', "'x'"),
    "c_name": ("name", "'nm' || i"),
    "c_oid": ("oid", "i"),
    "c_class": ("regclass", "'pg_class'::regclass"),
    "c_place": ("pg_lsn", "('16/B374D8' || (10 + i))::pg_lsn"),
    "c_path": ("jsonpath", "('$.a' || i)::jsonpath"),
}
POSTGRES_TYPES = (
    "CREATE EXTENSION IF NOT EXISTS citext",
    "CREATE TYPE mood AS ENUM ('sad', 'it''s, ok')",
    "CREATE DOMAIN feeling AS mood",
    "CREATE DOMAIN positive AS int CHECK (value > 0)",
    "CREATE DOMAIN object AS jsonb",
    "CREATE TYPE pair AS (a int, b text, t timestamptz)",
)
ODD_SETTINGS = {
    "quote_all_identifiers": "on",
    "bytea_output": "escape",
    "IntervalStyle": "sql_standard",
    "DateStyle": "SQL, DMY",
    "TimeZone": "Asia/Kathmandu",
    "extra_float_digits": "-5",
    "standard_conforming_strings": "off",
    "array_nulls": "off",
    "xmloption": "document",
    "xmlbinary": "hex",
    "lc_monetary": "C.UTF-8",
}
"""Settings of a role by which PostgreSQL would write and read values otherwise."""

DUCKDB: Mapping[str, tuple[str, str]] = {
    "c_tiny": ("TINYINT", "i"),
    "c_unsigned": ("UBIGINT", "18446744073709551615 - i"),
    "c_huge": ("HUGEINT", "170141183460469231731687303715884105727 - i"),
    "c_unsigned_huge": ("UHUGEINT", "i"),
    "c_single": ("FLOAT", "i * 0.1"),
    "c_double": (
        "DOUBLE",
        "CAST(CASE i % 4 WHEN 0 THEN 'nan' WHEN 1 THEN '-0' WHEN 2 THEN 'inf' ELSE '1e15' END AS DOUBLE)",
    ),
    "c_truth": ("BOOLEAN", "i % 2 = 0"),
    "c_day": ("DATE", "DATE '2020-01-01' + CAST(i AS INTEGER)"),
    "c_before_christ": ("DATE", "DATE '0044-03-15 (BC)'"),
    "c_after_9999": ("DATE", "DATE '12020-01-01'"),
    "c_local": ("TIMESTAMP", "TIMESTAMP '2020-01-01 10:00:00.5' + to_hours(CAST(i AS INTEGER))"),
    "c_local_before": ("TIMESTAMP", "TIMESTAMP '0044-03-15 (BC) 10:00:00'"),
    "c_seconds": ("TIMESTAMP_S", "TIMESTAMP '2020-01-01'"),
    "c_thousandths": ("TIMESTAMP_MS", "TIMESTAMP '2020-01-01 00:00:00.5'"),
    "c_billionths": ("TIMESTAMP_NS", "CAST('2020-01-01 00:00:00.123456789' AS TIMESTAMP_NS)"),
    "c_moment": ("TIMESTAMPTZ", "TIMESTAMPTZ '2020-01-01 10:00:00+02'"),
    "c_time": ("TIME", "TIME '10:00:00.25'"),
    "c_midnight": ("TIME", "TIME '24:00:00'"),
    "c_zoned": ("TIMETZ", "CAST('10:00:00+02' AS TIMETZ)"),
    "c_fine": ("TIME_NS", "CAST('10:00:00.123456789' AS TIME_NS)"),
    "c_uuid": ("UUID", "CAST(md5(CAST(i AS VARCHAR)) AS UUID)"),
    "c_bytes": ("BLOB", "unhex(md5(CAST(i AS VARCHAR)))"),
    "c_letters": ("BLOB", r"CAST('ab\x00c' AS BLOB)"),
    "c_bits": ("BIT", "CAST('0101' AS BIT)"),
    "c_interval": ("INTERVAL", "to_years(CAST(i AS INTEGER)) + to_days(-3) + to_seconds(4)"),
    "c_list": ("INTEGER[]", "[i, NULL, 2]"),
    "c_texts": ("VARCHAR[]", "['a,b', 'NULL', NULL, 'q\"''', ' x ', '']"),
    "c_array": ("INTEGER[3]", "CAST([1, 2, i] AS INTEGER[3])"),
    "c_struct": ("STRUCT(a INTEGER, b VARCHAR)", "{'a': i, 'b': 'x,y}'}"),
    "c_map": ("MAP(VARCHAR, INTEGER)", "MAP{'k': i}"),
    "c_union": ("UNION(n INTEGER, s VARCHAR)", "CAST(union_value(s := 'a' || i) AS UNION(n INTEGER, s VARCHAR))"),
    "c_mood": ("mood", "CASE WHEN i % 2 = 0 THEN 'sad' ELSE 'it''s, ok' END"),
    "c_json": ("JSON", "CAST('{\"a\":  ' || i || '}' AS JSON)"),
    "c_decimal": ("DECIMAL(10,3)", "i + 0.5"),
    "c_wide": ("DECIMAL(38,10)", "i + 0.5"),
    "c_nested": ("STRUCT(a DATE[])[]", "[{'a': [DATE '2020-01-01']}]"),
    "c_text": (
        "VARCHAR",
        "CASE i WHEN 0 THEN null WHEN 1 THEN '' WHEN 2 THEN 'a,\"b\n' WHEN 3 THEN 'NULL' ELSE ' x ' || i END",
    ),
    "c_loose": ("VARCHAR COLLATE NOCASE", "'Ab' || i % 3"),
}
DUCKDB_TYPES = ("CREATE TYPE mood AS ENUM ('sad', 'it''s, ok')",)
NOT_IN_PARQUET = ("c_huge", "c_unsigned_huge", "c_zoned", "c_interval")
"""Columns of DuckDB's that Parquet has no type for, or not for their values."""

OTHERWISE: Mapping[str, str] = {
    "c_before_christ": "DATE '0044-03-16 (BC)'",
    "c_after_9999": "DATE '12020-01-02'",
    "c_local_before": "TIMESTAMP '0044-03-15 (BC) 10:00:00.000001'",
    "c_seconds": "TIMESTAMP '2020-01-01 00:00:01'",
    "c_thousandths": "TIMESTAMP '2020-01-01 00:00:00.501'",
    "c_billionths": "CAST('2020-01-01 00:00:00.123456788' AS TIMESTAMP_NS)",
    "c_moment": "TIMESTAMPTZ '2020-01-01 10:00:00.000001+02'",
    "c_time": "TIME '10:00:00.250001'",
    "c_midnight": "TIME '00:00:00'",
    "c_zoned": "CAST('09:00:00+01' AS TIMETZ)",
    "c_fine": "CAST('10:00:00.123456788' AS TIME_NS)",
    "c_letters": r"CAST('ab\x00d' AS BLOB)",
    "c_bits": "CAST('00101' AS BIT)",
    "c_texts": "['a,b', NULL, 'NULL', 'q\"''', ' x ', '']",
    "c_nested": "[{'a': [DATE '2020-01-01', NULL]}]",
}
"""Other values of columns of DuckDB's that have one value in all rows."""
POSTGRES_OTHERWISE: Mapping[str, str] = {
    "c_local_before": "timestamp '0044-03-15 10:00:00.000001 BC'",
    "c_moment_before": "timestamptz '0044-03-15 10:00:00.000001+00 BC'",
    "c_midnight": "'00:00:00'",
    "c_feeling": "'it''s, ok'",
    "c_letter": "'y'",
    "c_class": "'pg_type'::regclass",
}


def otherwise(columns: Mapping[str, tuple[str, str]], others: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The same columns with another value in every row."""
    return {
        name: (type_, others.get(name, re.sub(r"\bi\b", "(i + 1)", value))) for name, (type_, value) in columns.items()
    }
