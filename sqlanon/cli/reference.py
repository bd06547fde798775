"""The reference pages of the documentation; `python -m sqlanon.cli.reference [DIRECTORY]` writes them."""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import EnumType
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from typer.models import ArgumentInfo, OptionInfo

from sqlanon.cli.call import COMMON, LIMITS
from sqlanon.cli.commands import program
from sqlanon.policy import AttributeSection, Hierarchy, Policy, PopulationPlace, PrivacyBudget, Quantile
from sqlanon.policy.algorithms import own_algorithms
from sqlanon.policy.attributes import Domain
from sqlanon.policy.keys import DrawnKey, KeyFile
from sqlanon.policy.privacy import CostsFile, own_models
from sqlanon.policy.schema import meanings
from sqlanon.policy.tables import PARTS_OF_TABLES, TablesPolicy

PAGES = ("policy.md", "cli.md")
_TAGS: list[Any] = [
    Literal[name] for name in (*own_models(), *own_algorithms())
]  # what tells the members of a union apart
_KEY_HEADINGS = ["key", "value", "default", "meaning"]
_PARTS = {
    "Source": "source",
    "ReleaseSection": "release",
    "CatalogSection": "catalog",
    "PrivacyBudget": "budget",
    "HistorySection": "history",
}


def page(name: str) -> str:
    """The text of a page: `policy.md` or `cli.md`."""
    return {"policy.md": _policy_page, "cli.md": _cli_page}[name]()


def write(directory: Path) -> None:
    """Write all pages."""
    for name in PAGES:
        (directory / name).write_text(page(name), encoding="utf-8")


# --- the policy


def _policy_page() -> str:
    named = {name: Policy.model_fields[name].annotation for name in _PARTS.values()}
    sections = [
        "# The policy",
        "Generated from the code (`python -m sqlanon.cli.reference`). A policy is a YAML file; an unknown key, model "
        "or role is refused with the nearest right word, and all problems are reported at once.",
        _section("The policy", Policy, level=2),
        *(_section(f"`{name}`", part, level=2) for name, part in named.items() if isinstance(part, type)),
        _section("`attributes`: an entry", AttributeSection, level=2),
        _section("`hierarchy`", Hierarchy, level=2),
        _section("`quantile`", Quantile, level=2),
        _section("`domain`", Domain, level=2),
        _section("`keyfile`", KeyFile, level=2),
        _section("`drawnkey`", DrawnKey, level=2),
        "## `privacy`: the models\n\nEvery class must satisfy all that are listed.",
        *(_section(f"`{name}`", model, level=3) for name, model in own_models().items()),
        _section("`costsfile`", CostsFile, level=3),
        _section("`populationplace`", PopulationPlace, level=3),
        *(_part(part) for model in own_models().values() for part in model.parts_at.values()),
        _section("`budget`", PrivacyBudget, level=2),
        "## `algorithm`: the searches\n\nChosen by `name`; docs/algorithms.md says when to choose which.",
        *_algorithms(),
        *(
            _part(part)
            for one in own_algorithms().values()
            for parts in one.choices_at.values()
            for part in parts.values()
        ),
        _section("A policy of several tables", TablesPolicy, level=2),
        *(_section(f"`{part.__name__.removesuffix('Section').lower()}`", part, level=3) for part in PARTS_OF_TABLES),
    ]
    return "\n\n".join(sections) + "\n"


def _part(part: type[BaseModel]) -> str:
    return _section(f"`{part.__name__.lower()}`", part, level=3)


def _algorithms() -> list[str]:
    """A section for each algorithm, after one of the keys that several algorithms have."""
    shared = _repeated([_keys(algorithm) for algorithm in own_algorithms().values()], least=2)
    return [
        "### Keys of several algorithms\n\n" + _table(_KEY_HEADINGS, shared),
        *(_section(f"`{name}`", algorithm, level=3, shared=shared) for name, algorithm in own_algorithms().items()),
    ]


def _section(title: str, part: type[BaseModel], level: int, shared: Sequence[list[str]] = ()) -> str:
    """The text of a part of the policy, and a table of its keys; shared ones by name alone."""
    rows = _keys(part)
    text = [f"{'#' * level} {title}", str(inspect.getdoc(part))]
    if any(row in shared for row in rows):
        text.append(f"It has {_names(rows, shared)} ([keys of several algorithms](#keys-of-several-algorithms)).")
    if any(row not in shared for row in rows):
        text.append(_table(_KEY_HEADINGS, [row for row in rows if row not in shared]))
    return "\n\n".join(text)


def _keys(part: type[BaseModel]) -> list[list[str]]:
    texts = meanings(part)
    fields = part.model_fields.items()
    return [_key(name, info, texts.get(name, "")) for name, info in fields if info.annotation not in _TAGS]


def _key(name: str, info: FieldInfo, text: str) -> list[str]:
    default = "required" if info.is_required() else _default(info.get_default(call_default_factory=True))
    meaning = " ".join(text.split())
    return [f"`{info.alias or name}`", _type(info.annotation) + _limits(info), default, meaning]


def _default(value: Any) -> str:
    if value in (None, PydanticUndefined, (), ("",), {}):
        return ""
    if isinstance(value, BaseModel):
        return "its own defaults"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _type(annotation: Any) -> str:
    """A type in words."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation == Policy.model_fields["algorithm"].annotation:
        return "[algorithm](#algorithm-the-searches)"
    if annotation == Policy.model_fields["privacy"].annotation:
        return "models"
    if origin is Literal:
        return ", ".join(f"`{choice}`" for choice in arguments)
    if origin in (Union, UnionType):
        return " or ".join(dict.fromkeys(_type(part) for part in arguments if part is not type(None)))
    if origin is tuple:
        if len(arguments) > 1 and arguments[1] is not Ellipsis:
            return f"[{', '.join(_type(part) for part in arguments)}]"
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"mapping to {_type(arguments[1])}"
    if origin is not None:  # Annotated
        return _type(arguments[0])
    return _plain(annotation)


def _plain(kind: Any) -> str:
    words = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "any value"}
    if kind in words:
        return words[kind]
    if isinstance(kind, EnumType):
        return ", ".join(f"`{choice.value}`" for choice in kind)  # type: ignore[var-annotated]
    name = str(kind.__name__)
    part = _PARTS.get(name, name.removesuffix("Section").lower())
    return f"[{part}](#{_ANCHORS.get(name, part)})"


_ANCHORS = {"AttributeSection": "attributes-an-entry"}


def _limits(info: FieldInfo) -> str:
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    limits = [
        f"{word} {getattr(rule, key):g}" for rule in info.metadata for key, word in words.items() if hasattr(rule, key)
    ]
    return f", {' and '.join(limits)}" if limits else ""


# --- the commands


def _cli_page() -> str:
    every = dict(commands(program(), "sqlanon"))
    shared = _repeated([_own_rows(function) for function in every.values()], least=3)
    sections = [
        "# The command line",
        "Generated from the code (`python -m sqlanon.cli.reference`).",
        _paragraphs(str(program().info.help)),
        _common(),
        "## Arguments of several commands\n\n" + _table(["argument", "meaning"], shared),
        *(_command(name, function, shared) for name, function in every.items()),
    ]
    return "\n\n".join(sections) + "\n"


def commands(group: typer.Typer, path: str) -> Iterator[tuple[str, Callable[..., Any]]]:
    """All commands of a group and of the groups in it, with their full names."""
    for command in group.registered_commands:
        if command.callback is not None:
            yield f"{path} {command.name}", command.callback
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from commands(inner.typer_instance, f"{path} {inner.name}")


def _common() -> str:
    """The options that all commands take, and those of all that work on data, once."""
    every = dict(commands(program(), "sqlanon"))
    function = every["sqlanon run"]
    on_data = [f"`{name.removeprefix('sqlanon ')}`" for name, one in every.items() if _takes_limits(one)]
    return "\n\n".join(
        [
            "## Options of every command",
            _options_table(function, COMMON),
            "## Limits of database sessions",
            f"Options of the commands that work on data: {', '.join(on_data)}.",
            _options_table(function, LIMITS),
        ]
    )


def _takes_limits(function: Callable[..., Any]) -> bool:
    return not {part.name for part in _parameters(function)}.isdisjoint(LIMITS)


def _options_table(function: Callable[..., Any], names: tuple[str, ...]) -> str:
    rows = [[f"`{_spelled(part)}`", _meaning(part)] for part in _parameters(function) if part.name in names]
    return _table(["option", "meaning"], rows)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _command(name: str, function: Callable[..., Any], shared: list[list[str]]) -> str:
    """The section of a command, with the arguments that several commands have by name alone."""
    arguments = [part for part in _parameters(function) if isinstance(_info(part), ArgumentInfo)]
    usage = " ".join([name, *(_metavar(part) for part in arguments), "[OPTIONS]"])
    text = [f"## `{name}`", f"```\n{usage}\n```", _paragraphs(inspect.getdoc(function) or "")]
    rows = _own_rows(function)
    if any(row not in shared for row in rows):
        text.append(_table(["argument", "meaning"], [row for row in rows if row not in shared]))
    if any(row in shared for row in rows):
        text.append(f"[Also](#arguments-of-several-commands) {_names(rows, shared)}.")
    return "\n\n".join(text)


def _own_rows(function: Callable[..., Any]) -> list[list[str]]:
    """The rows of a command's arguments and options, without the common ones."""
    own = [part for part in _parameters(function) if part.name not in (*COMMON, *LIMITS)]
    arguments = [part for part in own if isinstance(_info(part), ArgumentInfo)]
    options = [part for part in own if isinstance(_info(part), OptionInfo)]
    return [[f"`{_metavar(part)}`", _meaning(part)] for part in arguments] + [
        [f"`{_spelled(part)}`", _meaning(part)] for part in options
    ]


def _info(part: inspect.Parameter) -> Any:
    """Return the typer description of a parameter."""
    return part.annotation.__metadata__[0]


def _metavar(part: inspect.Parameter) -> str:
    name = (_info(part).metavar or part.name.upper()).strip("[]")
    return name if part.default is inspect.Parameter.empty else f"[{name}]"


def _spelled(part: inspect.Parameter) -> str:
    given = (_info(part).default, *(_info(part).param_decls or ()))  # Typer takes the first name for a default
    names = [name for name in given if isinstance(name, str)] or [f"--{part.name.replace('_', '-')}"]
    kind = part.annotation.__origin__
    is_flag = isinstance(part.default, bool) or bool in get_args(kind)
    return ", ".join(names) + ("" if is_flag else f" {_value(kind)}")


def _value(kind: Any) -> str:
    """Describe the value of an option."""
    arguments = [part for part in get_args(kind) if part is not type(None)]
    if get_origin(kind) is Literal:
        return "|".join(arguments)
    return _value(arguments[0]) if arguments else {str: "TEXT", Path: "PATH", int: "WHOLE", float: "NUMBER"}[kind]


def _meaning(part: inspect.Parameter) -> str:
    text = " ".join((_info(part).help or "").split())
    shown = part.default not in (None, False, inspect.Parameter.empty)
    variable = f" Environment: `{_info(part).envvar}`." if _info(part).envvar else ""
    return text + (f" Default: `{part.default}`." if shown else "") + variable


def _paragraphs(text: str) -> str:
    return "\n\n".join(" ".join(part.split()) for part in text.strip().split("\n\n"))


def _repeated(tables: list[list[list[str]]], least: int) -> list[list[str]]:
    """Rows that occur in so many tables, in the order of their first occurrence."""
    counts = Counter(tuple(row) for table in tables for row in table)
    return [list(row) for row, count in counts.items() if count >= least]


def _names(rows: list[list[str]], shared: Sequence[list[str]]) -> str:
    """First cells of the shared rows, without what follows a name."""
    return ", ".join(f"`{row[0].strip('`').split()[0].strip(',')}`" for row in rows if row in shared)


def _table(headings: list[str], rows: list[list[str]]) -> str:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [headings, ["---"] * len(headings), *escaped]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
