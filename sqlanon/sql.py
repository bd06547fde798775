"""The only renderer of SQL: templates, quoted identifiers, statements, names of work tables.

A template is one statement; `package:name` is one of another package, in its folder `sql_templates`. What it
interpolates must be of a type that renders safely: an `Identifier` or `Relation` (quoted), a number or boolean, a
`Text` (a quoted literal; file paths and settings only), a `RedactedValue` (which records don't show), or the `Markup`
that a macro returns. A plain `str` is refused, so nothing reaches the database unquoted.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemBytecodeCache,
    FileSystemLoader,
    FunctionLoader,
    StrictUndefined,
    Template,
)
from jinja2.bccache import Bucket
from jinja2.environment import TemplateModule
from markupsafe import Markup

from sqlanon.errors import PolicyError
from sqlanon.support.folding import fold, lines_of
from sqlanon.support.indentation import align

MAX_IDENTIFIER_BYTES = 63
Number = int | float | Decimal


@dataclass(frozen=True, order=True)
class Identifier:
    """A name as the database stores it, unquoted."""

    name: str

    def __str__(self) -> str:
        if "\x00" in self.name or not self.name:
            raise PolicyError("A name is empty or holds a NUL character.")
        return '"' + self.name.replace('"', '""') + '"'


class Unquoted(str):
    """A part of a name that was written without quotes, which databases fold as they do; equal to its text."""

    __slots__ = ()


@dataclass(frozen=True, order=True)
class Relation:
    """A table or view, by name and, where given, schema and catalog."""

    name: str
    schema: str | None = None
    catalog: str | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(part for part in (self.catalog, self.schema, self.name) if part is not None)

    def __str__(self) -> str:
        return ".".join(str(Identifier(part)) for part in self.parts)

    def sibling(self, name: str) -> Relation:
        """Another relation of the same schema."""
        return Relation(name, self.schema, self.catalog)

    @classmethod
    def parse(cls, text: str) -> Relation:
        """Read a name as SQL writes it: `table`, `schema.table`, `"Odd schema"."T"`, `catalog.schema.table`.

        Parts without quotes are `Unquoted`: what they mean is for an engine to say (`resolve`, `Dialect.stored`).
        """
        parts = _split_name(text)
        if not 1 <= len(parts) <= 3:
            raise PolicyError(f"'{text}' is not a table name: write table, schema.table or catalog.schema.table.")
        return cls(*reversed(parts))


def _split_name(text: str) -> list[str]:
    parts: list[str] = []
    rest = text.strip()
    while True:
        part, rest = _take_part(rest, text)
        parts.append(part)
        if not rest:
            return parts
        if not rest.startswith("."):
            raise PolicyError(f"'{text}' is not a table name: quote a part that holds odd characters.")
        rest = rest[1:]


def _take_part(rest: str, whole: str) -> tuple[str, str]:
    part: str
    if not rest.startswith('"'):
        end = next((i for i, char in enumerate(rest) if char in '."'), len(rest))
        part, rest = Unquoted(rest[:end]), rest[end:]
    else:
        end = 1
        while (end := rest.find('"', end)) >= 0 and rest[end : end + 2] == '""':
            end += 2
        if end < 0:
            raise PolicyError(f"'{whole}' has an open quote.")
        part, rest = rest[1:end].replace('""', '"'), rest[end + 1 :]
    if not part.strip():
        raise PolicyError(f"'{whole}' is not a table name: a part is empty.")
    return part, rest


@dataclass(frozen=True)
class Text:
    """A string literal: file paths and settings only; data is loaded through bound parameters."""

    value: str

    def __str__(self) -> str:
        if "\x00" in self.value:
            raise PolicyError("A text holds a NUL character.")
        return "'" + self.value.replace("'", "''") + "'"


@dataclass(frozen=True)
class RedactedValue:
    """A number out of the data, such as a column's least value, or a label that holds one.

    The database gets it; records and the log of a server don't hold it.
    """

    value: Number | str

    def __str__(self) -> str:
        if isinstance(self.value, str):
            return f"{_WITHHELD} {Text(self.value)}"
        return (
            f"{_WITHHELD} {self.value:f}" if isinstance(self.value, Decimal) else f"{_WITHHELD} {_finalize(self.value)}"
        )


_WITHHELD = "/* withheld */"
_RAW_TEXT = r"r'[^']*'|[(](?:r'[^']*'|'{4}| [|][|] )+[)]"  # see `Spelling`
_WITHHELD_VALUE = re.compile(
    re.escape(_WITHHELD)
    + r" (-?[0-9]+(?:[.][0-9]+)?|CAST\('([^']*)' AS (?:FLOAT8|DOUBLE)\)|'((?:[^']|'')*)'"
    + rf"|({_RAW_TEXT}))"
)


@dataclass(frozen=True)
class Statement:
    """One rendered SQL statement.

    name: the template it came from.
    values: those that it was rendered with; empty where it was put together otherwise.
    """

    name: str
    text: str
    values: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False, kw_only=True)

    def __str__(self) -> str:
        return self.text

    @property
    def record(self) -> str:
        """The text as it may be shown and kept: with `?` for what is withheld."""
        return _WITHHELD_VALUE.sub(f"{_WITHHELD} ?", self.text)

    def written(self, write: Callable[[Number | str], str]) -> str:
        """The text with every value that is withheld as `write` says it."""
        if _WITHHELD not in self.text:
            return self.text
        return _WITHHELD_VALUE.sub(lambda match: write(_value_of(match)), self.text)


def _value_of(match: re.Match[str]) -> Number | str:
    """A value as it was before it was written into a statement."""
    if match[4] is not None:
        return "'".join(re.findall("r'([^']*)'", match[4]))
    if match[3] is not None:
        return match[3].replace("''", "'")
    if match[2] is not None:
        return float(match[2])
    return Decimal(match[1]) if "." in match[1] else int(match[1])


def _finalize(value: Any) -> Any:
    if isinstance(value, Markup):
        return value
    if isinstance(value, (Identifier, Relation, Text, RedactedValue)):
        return Markup(str(value))
    if isinstance(value, bool):
        return Markup("TRUE" if value else "FALSE")
    if isinstance(value, (int, Decimal)):
        return Markup(str(value))
    if isinstance(value, float):
        return Markup(f"CAST('{value!r}' AS FLOAT8)")
    raise TypeError(f"A template interpolates a {type(value).__name__}; wrap it in Identifier, Relation or Text.")


_KEPT_OR_END_OF_LINE = re.compile(r"""(?P<kept>'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]*) | \n(?=[^\n])""", re.VERBOSE)


def indent(text: str, width: int = 4, first: bool = False) -> Markup:
    """The statement with its lines further in, but for those that are inside a literal or a quoted name."""
    margin = " " * width
    lines = _KEPT_OR_END_OF_LINE.sub(lambda part: part["kept"] or f"\n{margin}", text)
    return Markup(f"{margin}{lines}" if first else lines)


def listed(items: Iterable[Any], relation: str | None = None) -> Markup:
    """Names, numbers, expressions and NULL for None, with commas; with `relation`, columns of what is called so."""
    before = Markup("" if relation is None else f"{relation}.")
    return Markup(", ").join(Markup("NULL") if item is None else before + _finalize(item) for item in items)


def template_directory() -> Path:
    """Return the directory of the templates: in the wheel inside the package, in a checkout beside it."""
    inside = Path(str(resources.files("sqlanon"))) / "sql_templates"
    return inside if inside.is_dir() else inside.parent.parent / "sql_templates"


def _of_package(name: str) -> str | None:
    """Read the template `package:name` of another package; None where there is none."""
    package, colon, path = name.partition(":")
    return _read_template(package, path) if colon else None


def _read_template(package: str, path: str) -> str | None:
    file_of_template = resources.files(package) / "sql_templates" / path
    return file_of_template.read_text(encoding="utf-8") if file_of_template.is_file() else None


_HEAD = re.compile(r"\A\{#-?\s*(.*?)(?:\.\s|:\s|;\s|\.?\s*#\})", re.DOTALL)


@functools.cache
def headline(template: str) -> str | None:
    """Read the first sentence of a template's head, which says what the statement does; None where it has none."""
    package, colon, path = template.rpartition(":")
    folder = Path(str(resources.files(package))) / "sql_templates" if colon else template_directory()
    files = sorted(folder.glob(f"{path}*.sql.j2"))
    named = (file for file in files if file.name.split(".")[0] == path.rpartition("/")[2])
    head = next((_HEAD.match(file.read_text(encoding="utf-8")) for file in named), None)
    return None if head is None else re.sub(r"\{\{ (\w+) \}\}", r"\1", " ".join(head[1].split()))


class _CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, kept as Python keeps compiled modules: beside the sources, where these can be written to."""

    @classmethod
    def in_package(cls) -> _CompiledTemplates:
        kept = Path(importlib.util.cache_from_source(str(template_directory() / "templates.py"))).parent
        return cls(str(kept), f"%s.{sys.implementation.cache_tag}")

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)


def _create_environment(packages: Sequence[str] = ()) -> Environment:
    loaders = [FunctionLoader(functools.partial(_read_template, package)) for package in packages]
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(template_directory()), FunctionLoader(_of_package), *loaders]),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=_CompiledTemplates.in_package(),
    )
    environment.filters |= {"indent": indent, "listed": listed}
    return environment


_KEPT_OR_LITERAL = r"""(?P<kept>--[^\n]*|/[*].*?[*]/|"(?:[^"]|"")*"|\br'[^']*')|(?P<literal>'(?:[^']|'')*')"""


@dataclass(frozen=True)
class Spelling:
    """The spelling of words and literals in a dialect's statements; comments and quoted names stay as they are.

    words: each with its spelling there.
    raw_literals: a literal with a backslash is written raw, as `r'\\d'`; the quotes in it by themselves.

    A statement that was spelled stays as it is, so that it can be a part of another one.
    """

    words: tuple[tuple[str, str], ...] = ()
    raw_literals: bool = False

    def apply(self, text: str) -> str:
        """Spell a rendered statement."""
        return self._pattern.sub(self._spell, text) if self.words or self.raw_literals else text

    @functools.cached_property
    def _pattern(self) -> re.Pattern[str]:
        words = "|".join(rf"\b{re.escape(word)}\b" for word, _ in self.words)
        return re.compile(f"{_KEPT_OR_LITERAL}|(?P<word>{words or '(?!)'})", re.DOTALL)

    def _spell(self, part: re.Match[str]) -> str:
        if part["word"] is not None:
            return dict(self.words)[part["word"]]
        if part["literal"] is None or not self.raw_literals or "\\" not in part[0]:
            return part[0]
        pieces = [f"r'{piece}'" for piece in part[0][1:-1].split("''")]
        return pieces[0] if len(pieces) == 1 else "(" + " || '''' || ".join(pieces) + ")"


AS_WRITTEN = Spelling()


class Renderer:
    """Renders templates for one dialect; `name.<dialect>.sql.j2` beside `name.sql.j2` replaces it whole.

    dialects: the dialect, and those that it is derived from, whose macros and statements it has where it has none.
    packages: further packages with templates in their folder `sql_templates`, of which the program's go first.
    spelling: of words and literals.
    """

    def __init__(self, *dialects: str, packages: Sequence[str] = (), spelling: Spelling = AS_WRITTEN) -> None:
        self._spelling = spelling
        self._endings = (*(f".{dialect}.sql.j2" for dialect in dialects), ".sql.j2")
        self._templates: dict[str, Template] = {}
        self._environment = _create_environment(packages)
        self._macro_of = functools.cache(functools.partial(_find_macro, self._environment))
        self._environment.globals["d"] = self._dialect = SimpleNamespace()
        self._environment.globals["common"] = self._macros_of("common")
        for dialect in ("common", *reversed(dialects)):
            vars(self._dialect).update(vars(self._macros_of(dialect)))

    def _macros_of(self, dialect: str) -> TemplateModule:
        return self._environment.get_template(f"dialects/{dialect}.sql.j2").module

    def __call__(self, template: str, **values: Any) -> Statement:
        """Render the template `template` (its name without the ending)."""
        return Statement(template, fold(self.unfolded(template, values)), values=values)

    def unfolded(self, template: str, values: Mapping[str, Any]) -> str:
        """Render a template, and leave lines as long as they come."""
        return self._aligned(self.rendered(template, values))

    def rendered(self, template: str, values: Mapping[str, Any]) -> str:
        """Render a template as it stands: neither aligned nor in the words of the dialect."""
        return self._template(template).render(values).strip()

    def laid_out(self, text: str) -> str:
        """Write a rendered text as a statement for people: aligned, in the words of the dialect, with no long lines."""
        return fold(self._aligned(text))

    def _aligned(self, text: str) -> str:
        lines = (line.rstrip(" \t\n") for line in lines_of(text))
        return self._spelling.apply("\n".join(align([line for line in lines if line])))

    def source(self, template: str) -> str:
        """Return the text of a template's file; raises TemplatesNotFound where the dialect has none."""
        name = self._template(template).name
        assert name is not None
        assert self._environment.loader is not None
        return self._environment.loader.get_source(self._environment, name)[0]

    def _template(self, name: str) -> Template:
        if name not in self._templates:
            self._templates[name] = self._environment.select_template([name + ending for ending in self._endings])
        return self._templates[name]

    def macro(self, name: str, *arguments: Any, **named: Any) -> Markup:
        """The SQL expression that a macro gives: of the dialect, common to all, or `file.macro` of `macros/`."""
        if "." in name:
            return Markup(self._macro_of(name)(*arguments, **named).strip())
        return Markup(getattr(self._dialect, name)(*arguments, **named).strip())


def _find_macro(environment: Environment, name: str) -> Callable[..., str]:
    file, _, macro = name.partition(".")
    function: Callable[..., str] = getattr(environment.get_template(f"macros/{file}.sql.j2").module, macro)
    return function


_environment_without_dialect = functools.cache(_create_environment)


@functools.cache
def _macro_without_dialect(name: str) -> Callable[..., str]:
    return _find_macro(_environment_without_dialect(), name)


def macro(name: str, *arguments: Any, **named: Any) -> Markup:
    """The SQL expression that `file.macro` of `macros/` gives, which all dialects write alike."""
    return Markup(_macro_without_dialect(name)(*arguments, **named).strip())


@functools.cache
def renderer(*dialects: str, packages: tuple[str, ...] = (), spelling: Spelling = AS_WRITTEN) -> Renderer:
    """The renderer of a dialect; see `Renderer`."""
    return Renderer(*dialects, packages=packages, spelling=spelling)


def expression(text: str, **values: Any) -> Markup:
    """A trusted SQL expression; `{name}` in `text` is replaced by the rendered value."""
    return Markup(text.format(**{key: _finalize(value) for key, value in values.items()}))


def short_hash(*parts: str) -> str:
    """Eight hexadecimal digits that tell these parts from others."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:8]


def free_name(wanted: str, names: Iterable[str]) -> Identifier:
    """A name that none of these is, whatever the case: the wanted one, with as many `_` behind it as it takes."""
    taken = {name.lower() for name in names}
    while wanted.lower() in taken:
        wanted += "_"
    return Identifier(wanted)


def checked_name(name: str) -> str:
    """`name` itself, if no engine would cut it: at most 63 bytes."""
    if len(name.encode()) > MAX_IDENTIFIER_BYTES:
        raise PolicyError(f"The name '{name}' is longer than {MAX_IDENTIFIER_BYTES} bytes.")
    return name
