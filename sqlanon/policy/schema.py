"""The grammar of policies as JSON Schema, for editors and for programs that write policies."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BaseModel, Field, create_model

from sqlanon.policy import Policy
from sqlanon.policy.algorithm_parameters import AlgorithmParameters
from sqlanon.policy.algorithms import (
    algorithm_names,
    default_algorithm,
    is_missing,
    own_algorithms,
    parameters_of_algorithm,
)
from sqlanon.policy.attributes import HIERARCHY_KINDS, hierarchy_kinds, parameters_of_hierarchy
from sqlanon.policy.part import Part
from sqlanon.policy.privacy import model_names, own_models, parameters_of_model
from sqlanon.policy.registry import ModelParameters
from sqlanon.policy.tables import PARTS_OF_TABLES, TableSection, TablesPolicy

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ONE_TABLE = "OneTable"


_TEXT: dict[str, Any] = {"type": ["string", "integer"]}  # whole numbers stand for their text


def policy_schema() -> dict[str, Any]:
    """The JSON Schema of a policy as people write it, short forms included, with the meaning of each key.

    A policy that it refuses is refused by the reader too; rules between keys, and between policy and table, are left
    to the reader.
    """
    models, algorithms = own_models(), own_algorithms()
    schema = _with_choices(models, algorithms).model_json_schema(by_alias=True)
    parts = schema["$defs"]
    for name in model_names():
        if name not in models:
            _add_part(parts, schema["properties"]["privacy"]["items"], name, parameters_of_model(name))
    for name in algorithm_names():
        if name not in algorithms:
            _add_part(parts, schema["properties"]["algorithm"], name, parameters_of_algorithm(name))
    for name in hierarchy_kinds():
        if name not in HIERARCHY_KINDS:
            parameters = parameters_of_hierarchy(name)
            parts["Hierarchy"]["properties"][name] = written = parameters.model_json_schema()
            _explain(written, parameters)
    for part in _all_parts(Part):
        if part.__name__ in parts:
            _explain(parts[part.__name__], part)
    for algorithm in algorithms.values():
        parts[algorithm.__name__]["required"] = ["name"]
    _allow_short_forms(parts)
    _explain(schema, Policy)
    one = {key: value for key, value in schema.items() if key not in ("title", "$defs")}
    return {
        "$schema": DIALECT,
        "title": "A policy of sqlanon",
        "$defs": parts | _parts_of_tables() | {ONE_TABLE: one},
        "if": {"required": ["tables"]},
        "then": {"$ref": f"#/$defs/{TablesPolicy.__name__}"},
        "else": {"$ref": f"#/$defs/{ONE_TABLE}"},
    }


def _parts_of_tables() -> dict[str, Any]:
    """Describe the parts of a policy of several tables, whose columns are those of a policy of one."""
    whole = TablesPolicy.model_json_schema(by_alias=True)
    parts: dict[str, Any] = whole.pop("$defs") | {TablesPolicy.__name__: whole}
    for part in (TablesPolicy, *PARTS_OF_TABLES):
        _explain(parts[part.__name__], part)
    columns = parts[TableSection.__name__]["properties"]["attributes"]
    columns["additionalProperties"] = {"$ref": "#/$defs/AttributeSection"}
    return parts


def _with_choices(
    models: Mapping[str, type[ModelParameters]], algorithms: Mapping[str, type[AlgorithmParameters]]
) -> type[Policy]:
    """Make the class of policies whose models and algorithm are chosen among the program's own."""
    model: Any = Annotated[reduce(or_, models.values()), Field(discriminator="model")]
    algorithm: Any = Annotated[reduce(or_, algorithms.values()), Field(discriminator="name")]
    fields, default = Policy.model_fields, default_algorithm()
    chosen: Any = {
        "privacy": (tuple[model, ...], Field(default=(), min_length=1, description=fields["privacy"].description)),
        "algorithm": (algorithm, ... if is_missing(default) else default),
    }
    return create_model("Policy", __base__=Policy, __doc__=Policy.__doc__, **chosen)


def _add_part(parts: dict[str, Any], choice: dict[str, Any], name: str, parameters: type[Part] | None) -> None:
    """Let a choice of the schema know what an installed package adds to it."""
    assert parameters is not None
    key = f"added {name}"  # no class of the grammar has such a name
    parts[key] = parameters.model_json_schema(by_alias=True)
    _explain(parts[key], parameters)
    choice["discriminator"]["mapping"][name] = f"#/$defs/{quote(key)}"
    choice["oneOf"].append({"$ref": f"#/$defs/{quote(key)}"})


def _all_parts(part: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The classes of the grammar."""
    for one in part.__subclasses__():
        yield one
        yield from _all_parts(one)


def _explain(written: dict[str, Any], part: type[BaseModel]) -> None:
    """Give each key its meaning, and leave out the titles that only repeat names."""
    texts = meanings(part)
    names = {name: info.alias or name for name, info in part.model_fields.items()}
    for name, key in names.items():
        its = written["properties"][key]
        its.pop("title", None)
        if name in texts:
            its["description"] = " ".join(texts[name].split())
    written.pop("title", None)


def _allow_short_forms(parts: dict[str, Any]) -> None:
    """Take what the reader puts in full: one for a list of one, whole numbers for texts, `hierarchy: suppress`."""
    hierarchy, source = parts["Hierarchy"]["properties"], parts["Source"]["properties"]
    for key in ("date", "intervals"):
        (listed,) = [form for form in hierarchy[key]["anyOf"] if form.get("type") == "array"]
        hierarchy[key]["anyOf"].append(listed["items"])
    label = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
    (mapped,) = [form for form in hierarchy["mapping"]["anyOf"] if form.get("type") == "object"]
    mapped["additionalProperties"] = label
    hierarchy["unknown"]["anyOf"] = [_TEXT, {"type": "null"}]
    attribute = parts["AttributeSection"]["properties"]["hierarchy"]
    attribute["anyOf"].insert(0, {"const": "suppress"})
    for key in ("null", "dates", "names"):
        source[key] = {**{k: v for k, v in source[key].items() if k not in ("type", "items")}, **label}
    parts["Source"]["oneOf"] = [{"required": ["url", "table"]}, {"required": ["file"]}]
    parts["ReleaseSection"]["oneOf"] = [{"required": ["table"]}, {"required": ["file"]}]


def meanings(part: type[BaseModel]) -> dict[str, str]:
    """Read the docstrings of a part's fields from its source, those of its bases included.

    pydantic can do so while it builds a class, for every class and whenever the program starts; the reference and the
    schema alone need them.
    """
    texts: dict[str, str] = {}
    for base in reversed(part.__mro__):
        if issubclass(base, BaseModel) and base is not BaseModel:
            texts |= _written_in(base)
    return texts


def _written_in(part: type[BaseModel]) -> dict[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                texts[name] = inspect.cleandoc(text)
    return texts
