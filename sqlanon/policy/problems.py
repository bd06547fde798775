"""Problems of a policy, in plain sentences: pydantic's errors put into the words of the grammar."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from sqlanon.policy import AttributeSection, Domain, Hierarchy, Policy
from sqlanon.policy.algorithms import algorithm_names, parameters_of_algorithm
from sqlanon.policy.attributes import hierarchy_kinds, parameters_of_hierarchy
from sqlanon.policy.document import Document, Path
from sqlanon.policy.keys import KeyFile
from sqlanon.policy.privacy import model_names, parameters_of_model
from sqlanon.policy.registry import ModelParameters
from sqlanon.support.suggest import any_of, did_you_mean

_TYPES = {
    "string_type": "text; put it in quotes",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping of names",
}


_PARTS_OF_COLUMN: Mapping[str | int, type[BaseModel]] = {"domain": Domain, "key": KeyFile}


def problems_of(error: ValidationError, document: Document, whole: type[BaseModel] = Policy) -> list[str]:
    """One sentence for every wrong place, in the order of the places; whole: the part that the document is."""
    sentences: dict[str, None] = {}
    for detail in error.errors(include_url=False, include_context=True, include_input=False):
        path, owner = _locate(detail, document.data)
        owner = owner if whole is Policy else _part_at(path[:-1], whole)
        if detail["type"] == "too_short" and _value_at(path, document.data):
            continue  # nothing valid was left of a list whose entries have their own sentences
        sentences.setdefault(_sentence(detail, path, owner, document), None)
    return list(sentences)


def model_problems(name: str, parameters: Mapping[str, Any]) -> list[str]:
    """List the problems of a privacy model's parameters that are in no policy."""
    part = parameters_of_model(name)
    if part is None:
        return []  # the model was made by a program, which no policy can name
    try:
        part.model_validate({"model": name, **parameters})
    except ValidationError as error:
        return [f"{name}: {d['loc'][0]} must be {_wanted(d['type'], d['loc'], part)}." for d in error.errors()]
    return []


def _locate(detail: ErrorDetails, data: Any) -> tuple[Path, type[BaseModel]]:
    """The path in the document, and the part of the grammar whose key (the path's last) is wrong."""
    path = tuple(_real_parts(detail["loc"], data, detail["type"] == "missing"))
    return path, _owner(path, data)


def _real_parts(location: Path, data: Any, is_missing: bool) -> Iterator[str | int]:
    """Leave out what pydantic adds to a path: the member of a union it tried.

    The last part of a path that is missing is one that the document lacks.
    """
    if location[0] == "algorithm" and len(location) > 3 and _choices_at(location, data):
        location = (*location[:3], *location[4:])
    for part in location:
        there = _has(data, part)
        if there or (is_missing and part == location[-1]):
            yield part
        if not there:
            return
        data = data[part]


def _part_at(path: Path, whole: type[BaseModel]) -> type[BaseModel]:
    """Find the part of the grammar at a path: what is in a mapping of names is of one kind."""
    part = whole
    for name in path:
        info = next((info for key, info in part.model_fields.items() if (info.alias or key) == name), None)
        kinds = () if info is None else (info.annotation, *get_args(info.annotation))
        inner = next((one for one in kinds if isinstance(one, type) and issubclass(one, BaseModel)), None)
        part = part if inner is None else inner
    return part


def _has(data: Any, part: str | int) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _owner(path: Path, data: Any) -> type[BaseModel]:
    if path[:1] == ("attributes",) and len(path) > 2:
        if len(path) > 4 and path[3] not in Hierarchy.model_fields and path[3] in hierarchy_kinds():
            return parameters_of_hierarchy(str(path[3]))
        return AttributeSection if len(path) == 3 else _part_of_column(path)
    if path[:1] == ("privacy",) and len(path) > 2:
        model = parameters_of_model(data["privacy"][path[1]].get("model")) or ModelParameters
        return model.parts_at.get(str(path[2]), model) if len(path) > 4 else model
    if path[:1] == ("algorithm",) and len(path) > 3 and _choices_at(path, data):
        return _chosen(_choices_at(path, data), _value_at(path[:3], data)) or Policy
    if len(path) > 1 and path[0] == "algorithm":
        return parameters_of_algorithm(data.get("algorithm", {}).get("name")) or Policy
    if len(path) > 1 and path[0] in ("source", "release", "catalog"):
        part = Policy.model_fields[str(path[0])].annotation
        assert isinstance(part, type)
        assert issubclass(part, BaseModel)
        return part
    return Policy


def _choices_at(path: Path, data: Any) -> Mapping[str, type[BaseModel]]:
    """Find the parts that each entry of a mapping of the algorithm is one of, by the key that only it has."""
    given = data.get("algorithm") if isinstance(data, Mapping) else None
    parameters = parameters_of_algorithm(given.get("name")) if isinstance(given, Mapping) else None
    return {} if parameters is None or len(path) < 2 else parameters.choices_at.get(str(path[1]), {})


def _chosen(choices: Mapping[str, type[BaseModel]], entry: Any) -> type[BaseModel] | None:
    """Find the part of an entry; None where it has not just one of the keys that tell."""
    keys = [key for key in choices if isinstance(entry, Mapping) and key in entry]
    return choices[keys[0]] if len(keys) == 1 else None


def _part_of_column(path: Path) -> type[BaseModel]:
    return _PARTS_OF_COLUMN.get(path[2], Hierarchy)


def _sentence(detail: ErrorDetails, path: Path, owner: type[BaseModel], document: Document) -> str:
    place, kind, context = document.place(path), detail["type"], detail.get("ctx", {})
    if kind == "rule":
        return f"{place} {context['sentence']}"
    if kind == "extra_forbidden":
        return f"{place}: unknown key '{path[-1]}'; {did_you_mean(str(path[-1]), keys_of(owner))}"
    if kind == "missing":
        return _missing(path, owner, document)
    if kind in ("enum", "literal_error"):
        return _choice(path, re.findall(r"'([^']*)'", str(context["expected"])), document)
    if kind == "union_tag_not_found" and path[:1] == ("algorithm",) and len(path) > 2:
        return f"{place} must be a mapping with one of the keys {', '.join(_choices_at(path, document.data))}."
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        tag, choices = ("name", algorithm_names()) if path[0] == "algorithm" else ("model", model_names())
        if kind == "union_tag_not_found":
            return f"{place}.{tag} is missing; choose from {', '.join(choices)}."
        return _choice((*path, tag), choices, document)
    if kind.startswith("model_"):
        return f"{place} must be a mapping with keys such as {_keys_at(path, document.data)}."
    if kind in ("too_short", "string_too_short"):
        return f"{place} must not be empty."
    if kind == "too_long":
        return f"{place} must be a shorter list."
    return f"{place} must be {_wanted(kind, path, owner)}."


def _missing(path: Path, owner: type[BaseModel], document: Document) -> str:
    above = document.place(path[:-1])
    if isinstance(path[-1], int):
        return f"{above} must be a longer list."
    if issubclass(owner, ModelParameters):
        return f"{above}: {path[-1]} is missing; {_value_at(path[:-1], document.data)['model']} needs it."
    return f"{above}: {path[-1]} is missing." if len(path) > 1 else f"{path[-1]} is missing."


def _choice(path: Path, choices: list[str], document: Document) -> str:
    value = _value_at(path, document.data)
    place = document.place(path)
    if not isinstance(value, str):
        return f"{place} must be one of {any_of(choices)}."
    return f"{place}: '{value}' is unknown; {did_you_mean(value, choices)}"


def _value_at(path: Path, data: Any) -> Any:
    for part in path:
        data = data[part]
    return data


def keys_of(part: type[BaseModel]) -> list[str]:
    """The keys of a part of the grammar, as the policy writes them."""
    return [info.alias or name for name, info in part.model_fields.items()]


def _keys_at(path: Path, data: Any) -> str:
    if path[:1] == ("privacy",) and len(path) > 2:
        return ", ".join(keys_of(_owner((*path, "", ""), data)))  # "": of a key in it
    if path[:1] == ("privacy",):
        return "model and its parameters"
    if path[:1] == ("algorithm",):
        return "name"
    if path[:1] == ("attributes",) and len(path) > 1:
        return ", ".join(keys_of(AttributeSection if len(path) == 2 else _part_of_column(path)))
    return ", ".join(keys_of(_owner((*path, ""), {})))


def _wanted(kind: str, path: Path, owner: type[BaseModel]) -> str:
    if owner is Hierarchy and "mapping" in path[3:-1]:
        return "a label or a list of labels; put labels that look like numbers in quotes"
    if kind in _TYPES:
        return _TYPES[kind]
    fields = dict(zip(keys_of(owner), owner.model_fields.values(), strict=True))
    info = next((fields[part] for part in reversed(path) if isinstance(part, str) and part in fields), None)
    if info is None:
        return "of another kind"
    words = "a finite number" if kind == "finite_number" else "a number"
    rules = [rule for rule in info.metadata if kind == "less_than_equal" or not isinstance(rule, Le)]
    return _number("a whole number" if info.annotation is int else words, rules)


def _number(words: str, rules: Sequence[object]) -> str:
    return words + " and".join(limit for limit in map(_limit, rules) if limit is not None)


def _limit(rule: object) -> str | None:
    match rule:
        case Ge(ge=least):
            return f" of at least {least}"
        case Gt(gt=below):
            return f" greater than {below}"
        case Lt(lt=above):
            return f" less than {above}"
        case Le(le=most):
            return f" of at most {most}"
    return None
