"""The only renderer of SQL: templates, quoted identifiers, statements, names of work tables.

A template is one statement; `package:name` is one of another package, in its folder `sql_templates`. What it
interpolates must be of a type that renders safely: an `Identifier` or `Relation` (quoted), a number or boolean, a
`Text` (a quoted literal; file paths and settings only), a `RedactedValue` (which records don't show), or an
`Expression`. A plain `str` is refused, so nothing reaches the database unquoted.
"""

from __future__ import annotations

import functools
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, NoReturn, Protocol

from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    FunctionLoader,
    StrictUndefined,
    Template,
)
from markupsafe import Markup

from sqlanon.errors import EngineError, PolicyError
from sqlanon.support.folding import align, fold, lines_of
from sqlanon.support.template_files import CompiledTemplates, has_file, of_package, read_template, template_directory

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

    def __html__(self) -> str:
        return self.text

    def called(self, name: str) -> Statement:
        """Return the statement under another name."""
        return replace(self, name=name)

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


class Expression(Protocol):
    """A part of a statement, which a template writes into it as it is.

    It is a text that all dialects write alike (`Markup`), a macro with its arguments, or another statement.
    """

    def __html__(self) -> str: ...


@dataclass(frozen=True)
class MacroCall:
    """The expression that a macro gives: its name and arguments, written out by the renderer of a statement around it.

    So one value serves every dialect, and can be kept, compared, and pickled before the place of a statement is known.
    """

    macro: str
    arguments: tuple[Any, ...] = ()
    named: tuple[tuple[str, Any], ...] = ()
    _texts: dict[DialectRenderer, Markup] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __html__(self) -> Markup:
        renderer = at_work()
        if renderer not in self._texts:
            self._texts[renderer] = renderer.call(self)
        return self._texts[renderer]

    __str__ = __html__

    def __reduce__(self) -> tuple[type[MacroCall], tuple[Any, ...]]:
        return MacroCall, (self.macro, self.arguments, self.named)


def macro(name: str, *arguments: Any, **named: Any) -> Expression:
    """The SQL expression that a macro gives: of the dialect, common to all, or `file.macro` of `macros/`."""
    return MacroCall(name, tuple(map(_kept, arguments)), tuple((key, _kept(value)) for key, value in named.items()))


def _kept(argument: Any) -> Any:
    """Keep a list as it is now."""
    return tuple(map(_kept, argument)) if isinstance(argument, list | tuple) else argument


_AT_WORK: ContextVar[DialectRenderer] = ContextVar("at_work")


def at_work() -> DialectRenderer:
    """Return the renderer of the statement that is being written; raises TypeError where none is."""
    renderer = _AT_WORK.get(None)
    if renderer is None:
        raise TypeError("An expression has no text before it is in a statement, and the place of that is known.")
    return renderer


def _finalize(value: Any) -> Any:
    if isinstance(value, Markup | MacroCall | Statement):
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


def indent(text: str | Expression, width: int = 4, first: bool = False) -> Markup:
    """The statement with its lines further in, but for those that are inside a literal or a quoted name."""
    margin = " " * width
    lines = _KEPT_OR_END_OF_LINE.sub(lambda part: part["kept"] or f"\n{margin}", str(text))
    return Markup(f"{margin}{lines}" if first else lines)


def listed(items: Iterable[Any], relation: str | None = None) -> Markup:
    """Names, numbers, expressions and NULL for None, with commas; with `relation`, columns of what is called so."""
    before = Markup("" if relation is None else f"{relation}.")
    return Markup(", ").join(Markup("NULL") if item is None else before + _finalize(item) for item in items)


def _create_environment(packages: Sequence[str] = ()) -> Environment:
    loaders = [FunctionLoader(functools.partial(read_template, package)) for package in packages]
    environment = Environment(
        loader=ChoiceLoader([FileSystemLoader(template_directory()), FunctionLoader(of_package), *loaders]),
        undefined=StrictUndefined,
        autoescape=True,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        bytecode_cache=CompiledTemplates.in_package(),
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


class Renderer(ABC):
    """The maker of a session's statements and expressions."""

    dialects: tuple[str, ...]
    """The dialects that it writes, for messages."""

    @abstractmethod
    def __call__(self, template: str, **values: Any) -> Statement:
        """Make a statement of the template `template` (its name without the ending)."""

    @abstractmethod
    def source(self, template: str) -> str:
        """Return the text of a template's file; raises TemplatesNotFound where the dialects have none."""

    @abstractmethod
    def has_macro(self, name: str) -> bool:
        """Tell whether a macro is there: of the dialect, common to all, or `file.macro` of `macros/`."""

    def macro(self, name: str, *arguments: Any, **named: Any) -> Expression:
        """Return the expression that a macro gives; raises EngineError for one that is not there."""
        if not self.has_macro(name):
            raise self._lacking(name)
        return macro(name, *arguments, **named)

    def _lacking(self, name: str) -> EngineError:
        return EngineError(f"There is no macro `{name}` in {' and '.join(self.dialects)}.")


class DialectRenderer(Renderer):
    """Renders templates for one dialect; `name.<dialect>.sql.j2` beside `name.sql.j2` replaces it whole.

    dialects: the dialect, and those that it is derived from, whose macros and statements it has where it has none.
    packages: further packages with templates in their folder `sql_templates`, of which the program's go first.
    spelling: of words and literals.
    """

    def __init__(self, *dialects: str, packages: Sequence[str] = (), spelling: Spelling = AS_WRITTEN) -> None:
        self.dialects = dialects[:1]
        self._spelling = spelling
        self._endings = (*(f".{dialect}.sql.j2" for dialect in dialects), ".sql.j2")
        self._has_file = functools.cache(functools.partial(has_file, packages))
        self._templates: dict[str, Template] = {}
        self._environment = _create_environment(packages)
        self._module = functools.cache(lambda path: self._environment.get_template(f"{path}.sql.j2").module)
        self._environment.globals["d"] = self._dialect = _DialectMacros(self._lacking)
        self._environment.globals["common"] = self._module("dialects/common")
        for dialect in ("common", *reversed(dialects)):
            vars(self._dialect).update(vars(self._module(f"dialects/{dialect}")))

    def __call__(self, template: str, **values: Any) -> Statement:
        """Render the template `template` (its name without the ending)."""
        return Statement(template, fold(self.unfolded(template, values)), values=values)

    def unfolded(self, template: str, values: Mapping[str, Any]) -> str:
        """Render a template, and leave lines as long as they come."""
        return self._aligned(self.rendered(template, values))

    def rendered(self, template: str, values: Mapping[str, Any]) -> str:
        """Render a template as it stands: neither aligned nor in the words of the dialect."""
        token = _AT_WORK.set(self)
        try:
            return self._template(template).render(values).strip()
        finally:
            _AT_WORK.reset(token)

    def laid_out(self, text: str) -> str:
        """Write a rendered text as a statement for people: aligned, in the words of the dialect, with no long lines."""
        return fold(self._aligned(text))

    def _aligned(self, text: str) -> str:
        lines = (line.rstrip(" \t\n") for line in lines_of(text))
        return self._spelling.apply("\n".join(align([line for line in lines if line])))

    def has_template(self, name: str) -> bool:
        """Tell whether the dialect has a template, of its own or one that others have, too."""
        return any(self._has_file(name + ending) for ending in self._endings)

    def source(self, template: str) -> str:
        name = self._template(template).name
        assert name is not None
        assert self._environment.loader is not None
        return self._environment.loader.get_source(self._environment, name)[0]

    def _template(self, name: str) -> Template:
        if name not in self._templates:
            self._templates[name] = self._environment.select_template([name + ending for ending in self._endings])
        return self._templates[name]

    def has_macro(self, name: str) -> bool:
        return self._find_macro(name) is not None

    def call(self, call: MacroCall) -> Markup:
        """Write the expression that a macro gives, while a statement is written."""
        function = self._find_macro(call.macro)
        if function is None:
            raise self._lacking(call.macro)
        return Markup(function(*call.arguments, **dict(call.named)).strip())

    def written(self, part: Expression | Identifier | Relation) -> str:
        """Write a part of a statement alone."""
        token = _AT_WORK.set(self)
        try:
            return str(Markup(_finalize(part)))
        finally:
            _AT_WORK.reset(token)

    def _find_macro(self, name: str) -> Callable[..., str] | None:
        file, dot, own = name.rpartition(".")
        if dot and not self._has_file(f"macros/{file}.sql.j2"):
            return None
        macros = vars(self._module(f"macros/{file}") if dot else self._dialect)
        return macros.get(own)


class _DialectMacros(SimpleNamespace):
    """The macros of a dialect by name, as templates call them; one that is not there is an error of `lacking`."""

    __slots__ = ("_lacking",)

    def __init__(self, lacking: Callable[[str], EngineError]) -> None:
        self._lacking = lacking

    def __getattr__(self, name: str) -> NoReturn:
        raise self._lacking(name)


@functools.cache
def renderer(*dialects: str, packages: tuple[str, ...] = (), spelling: Spelling = AS_WRITTEN) -> DialectRenderer:
    """The renderer of a dialect; see `DialectRenderer`."""
    return DialectRenderer(*dialects, packages=packages, spelling=spelling)


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
