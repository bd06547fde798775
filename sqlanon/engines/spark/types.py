"""Types of Spark as `DESCRIBE … AS JSON` tells them: their kind, and what holds of values that have parts."""

from __future__ import annotations

from typing import Any

from sqlanon.engines.columns import Column, Kind
from sqlanon.sql import Identifier

Type = dict[str, Any]
_KINDS = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), Kind.INTEGER),
    **dict.fromkeys(("float", "double"), Kind.FLOAT),
    **dict.fromkeys(("string", "varchar", "char"), Kind.TEXT),
    "decimal": Kind.DECIMAL,
    "boolean": Kind.BOOLEAN,
    "date": Kind.DATE,
    "timestamp_ntz": Kind.TIMESTAMP,
    "timestamp_ltz": Kind.TIMESTAMPTZ,
}
_SPELLED = {
    "int": "INTEGER",
    "string": "VARCHAR",
    "varchar": "VARCHAR",
    "char": "VARCHAR",
    "timestamp_ntz": "TIMESTAMP",
    "timestamp_ltz": "TIMESTAMP WITH TIME ZONE",
}
"""Types as the database at home calls them, where this is not the same word."""
_BY_BYTES = "UTF8_BINARY"  # the collation by which different texts are different


def column_of(described: dict[str, Any]) -> Column:
    """Read a column; nested types, bytes, and texts of a lax collation, are OTHER."""
    name, of_type = described["name"], described["type"]
    return Column(
        name,
        _spelled(of_type),
        _kind_of(of_type),
        described.get("nullable", True),
        compares=of_type["name"] != "map",
        has_exact_text=_has_exact_text(of_type),
        field=_field_of(Identifier(name), of_type),
    )


def _kind_of(of_type: Type) -> Kind:
    kind = _KINDS.get(of_type["name"], Kind.OTHER)
    is_lax = kind is Kind.TEXT and of_type.get("collation", _BY_BYTES) != _BY_BYTES
    return Kind.OTHER if is_lax else kind


def _spelled(of_type: Type) -> str:
    if of_type["name"] == "decimal":
        return f"DECIMAL({of_type['precision']},{of_type['scale']})"
    if _kind_of(of_type) is Kind.OTHER:
        return _spelled_there(of_type)
    name: str = of_type["name"]
    return _SPELLED.get(name, name.upper())


def _spelled_there(of_type: Type) -> str:
    """Write a type as Spark's own casts take it, with the types of all parts where they are known."""
    match of_type:
        case {"name": "array", "element_type": element}:
            return f"ARRAY<{_spelled_there(element)}>"
        case {"name": "map", "key_type": key, "value_type": value}:
            return f"MAP<{_spelled_there(key)}, {_spelled_there(value)}>"
        case {"name": "struct", "fields": fields}:
            parts = (f"{Identifier(one['name'])}: {_spelled_there(one['type'])}" for one in fields)
            return f"STRUCT<{', '.join(parts)}>"
        case {"name": "string" | "varchar" | "char"}:
            collation = of_type.get("collation", _BY_BYTES)
            return "STRING" if collation == _BY_BYTES else f"STRING COLLATE {collation}"
        case {"name": "decimal"}:
            return f"DECIMAL({of_type['precision']},{of_type['scale']})"
        case _:
            return str(of_type["name"]).upper()


def _has_exact_text(of_type: Type) -> bool:
    """Tell whether JSON tells values apart: Spark writes keys of maps that have parts, or are bytes, by their place."""
    match of_type["name"]:
        case "array":
            return "element_type" in of_type and _has_exact_text(of_type["element_type"])
        case "map":
            if "key_type" not in of_type:
                return False
            return of_type["key_type"]["name"] in _KINDS and _has_exact_text(of_type["value_type"])
        case "struct":
            return all(_has_exact_text(one["type"]) for one in of_type.get("fields", [{"type": {"name": ""}}]))
        case name:
            return name in _KINDS or name == "binary"


def _field_of(name: Identifier, of_type: Type) -> str:
    """Write an example of a part of a value as a column of a view; nothing for a value without parts."""
    match of_type["name"]:
        case "array":
            part, called = f"get({name}, 0)", "0"
        case "map":
            part, called = f"try_element_at({name}, …)", "value"
        case "struct" if of_type.get("fields"):
            called = of_type["fields"][0]["name"]
            part = f"{name}.{Identifier(called)}"
        case _:
            return ""
    return f"{part} AS {Identifier(f'{name.name}_{called}')}"
