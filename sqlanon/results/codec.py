"""Values as plain data and back, by the fields of their classes.

Fields that may be lacking are declared by `optional`: None stands for what was not recorded, and is not written. The
fields of a value that is declared by `inline` stand among those of the value that holds it.
"""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from sqlanon.errors import SqlanonError

T = TypeVar("T")
_WORDS = {str: "text", bool: "truth value", int: "number", float: "number"}
_OPTIONAL, _INLINE, _HIDDEN = ({name: True} for name in ("optional", "inline", "hidden"))


def optional() -> Any:
    """Declare a field that is left out where it is None: not recorded, or of no meaning for this run."""
    return dataclasses.field(default=None, metadata=_OPTIONAL)


def inline(*, default: Any = dataclasses.MISSING) -> Any:
    """Declare a field whose own fields stand in its place, or nothing where it is None."""
    return dataclasses.field(default=default, metadata=_INLINE)


def hidden() -> Any:
    """Declare a field that is never written."""
    return dataclasses.field(default=None, metadata=_HIDDEN, compare=False)


def to_json(value: Any) -> Any:
    """Turn a value into plain data: dicts, lists, texts, numbers."""
    if dataclasses.is_dataclass(value):
        shown: dict[str, Any] = {}
        for field in dataclasses.fields(value):
            inner = getattr(value, field.name)
            if "hidden" in field.metadata or (inner is None and field.metadata):
                continue
            shown |= to_json(inner) if "inline" in field.metadata else {field.name: to_json(inner)}
        return shown
    if isinstance(value, Mapping):
        return {name: to_json(inner) for name, inner in value.items()}
    if isinstance(value, tuple | list):
        return [to_json(inner) for inner in value]
    return value


class JsonObject:
    """A dataclass that is printed as one object."""

    def as_json(self) -> dict[str, Any]:
        """One object of plain values, as `--json` prints it."""
        plain: dict[str, Any] = to_json(self)
        return plain


def from_json(kind: type[T], data: Any, place: str = "") -> T:
    """Make a value of a class from plain data.

    place: where the data is in a document, for messages.

    Raises SqlanonError where a part is lacking or of another type.
    """
    if not isinstance(data, Mapping):
        raise SqlanonError(f"The record of the run is damaged: {place or 'it'} is no object.")
    values: dict[str, Any] = {}
    for field, hint in _fields(kind):  # type: ignore[arg-type]
        inside = f"{place}.{field.name}" if place else field.name
        if "inline" in field.metadata:
            values[field.name] = _inlined(hint, data, place)
        elif field.name in data:
            values[field.name] = _decoded(hint, data[field.name], inside)
        elif field.default is dataclasses.MISSING:
            raise SqlanonError(f"The record of the run is damaged: {inside} is missing.")
    return kind(**values)


@functools.cache
def _fields(kind: type[Any]) -> list[tuple[dataclasses.Field[Any], Any]]:
    hints = typing.get_type_hints(kind)
    return [(field, hints[field.name]) for field in dataclasses.fields(kind) if "hidden" not in field.metadata]


def _inlined(hint: Any, data: Mapping[str, Any], place: str) -> Any:
    """The value whose fields are among those of `data`; None where its first field is not."""
    kind = next(one for one in typing.get_args(hint) if one is not types.NoneType)
    (first, _), *_ = _fields(kind)
    return from_json(kind, data, place) if first.name in data else None


def _decoded(hint: Any, data: Any, place: str) -> Any:
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return data if isinstance(data, hint) else from_json(hint, data, place)
    if origin is types.UnionType:  # with None
        kinds = [part for part in parts if part is not types.NoneType]
        return data if data is None or len(kinds) > 1 else _decoded(kinds[0], data, place)
    if origin is tuple and not isinstance(data, list | tuple):
        raise SqlanonError(f"The record of the run is damaged: {place} is no list.")
    if origin is tuple and parts[1] is Ellipsis:
        return tuple(_decoded(parts[0], inner, f"{place}[{at}]") for at, inner in enumerate(data))
    if origin is tuple:
        return tuple(_decoded(part, inner, place) for part, inner in zip(parts, data, strict=True))
    if origin is not None:  # a mapping
        return {name: _decoded(parts[1], inner, f"{place}.{name}") for name, inner in data.items()}
    if not _is_scalar(hint, data):
        raise SqlanonError(f"The record of the run is damaged: {place} is no {_WORDS[hint]}.")
    return data


def _is_scalar(hint: Any, data: Any) -> bool:
    """Tell whether a value is of a scalar type; JSON does not tell whole numbers from others."""
    if hint in (int, float):
        return isinstance(data, int | float) and not isinstance(data, bool)
    return hint not in _WORDS or isinstance(data, hint)
