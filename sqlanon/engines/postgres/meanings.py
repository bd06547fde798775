"""The settings of a PostgreSQL session by which values and statements mean what they mean here."""

from __future__ import annotations

FIXED = {
    "row_security": "off",  # an error, where a policy would hide rows
    "timezone": "UTC",
    "datestyle": "ISO, YMD",
    "intervalstyle": "iso_8601",
    "bytea_output": "hex",
    "jit": "off",  # generated statements have many expressions and few rows
    "enable_nestloop": "off",  # joins of several columns are taken for tiny, and would be looped over for hours
    "extra_float_digits": "1",  # shortest digits that read back as the same number
    "standard_conforming_strings": "on",
    "quote_all_identifiers": "off",  # names of types are looked up as they are written without quotes
    "client_min_messages": "error",
}
MEANINGS_OF_VALUES = {name: value for name, value in FIXED.items() if name != "client_min_messages"}
"""Settings by which a statement means the same, and is planned alike, in sessions that are not ours."""
