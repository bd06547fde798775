"""Options of sessions, printing and endings, which all commands share."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
import io
import json
import math
import os
import re
import shlex
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from typer.core import TyperGroup
from typer.models import ArgumentInfo

from sqlanon.cli import BEGAN
from sqlanon.cli.deferred import embedded, read_options, session_limits
from sqlanon.cli.deferred import session as sessions
from sqlanon.cli.streams import UnwrittenOutput
from sqlanon.engines.urls import scrubbed
from sqlanon.errors import Cancelled, Notice, OutputError, PolicyError, SqlanonError
from sqlanon.support import documents, environment

if TYPE_CHECKING:
    from sqlanon.engines.read_options import ReadOptions
    from sqlanon.engines.session_limits import EngineOptions

INTERRUPTED = Cancelled.exit_code
_UNICODE = ("utf-8", "utf8", "utf-16", "utf-32")


@dataclass(frozen=True)
class Call:
    """One call of a command: the limits of its database sessions, how it prints, and when it began."""

    options: EngineOptions
    json: bool
    verbose: bool
    began: float = BEGAN

    def emit(self, data: Any) -> None:
        """Print one JSON object on stdout; characters that it can't be encoded with are escaped as JSON does.

        Infinities and NaN, which JSON has no numbers for, are the texts inf, -inf and nan.
        """
        ascii_only = (sys.stdout.encoding or "ascii").lower().replace("_", "-") not in _UNICODE
        print(json.dumps(_written(data), ensure_ascii=ascii_only, indent=2, default=str, allow_nan=False))

    def note(self, text: str) -> None:
        """Print a line for people on stderr."""
        print(text, file=sys.stderr)

    @contextlib.contextmanager
    def telling(self, run: str) -> Iterator[None]:
        """Inside it is printed what a run came to that has published its release.

        Characters that stdout can't be encoded with are escaped. Raises OutputError where nothing can be written.
        """
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")
        try:
            yield
            sys.stdout.flush()
        except OSError as error:
            raise OutputError(
                f"The release is published, as run {run}, but the output could not be written: {error.strerror}."
                f" `sqlanon show {run}` and `sqlanon report {run}` show it."
            ) from error


def _written(data: Any) -> Any:
    """Replace numbers that JSON can't write by their texts."""
    if isinstance(data, dict):
        return {key: _written(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_written(value) for value in data]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


_DATABASE = "Limits of the database session"
MemoryLimit = Annotated[
    str | None, typer.Option(help="Memory the database may use, such as 2GB.", rich_help_panel=_DATABASE)
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads it may use.", rich_help_panel=_DATABASE)]
TempDirectory = Annotated[str | None, typer.Option(help="Directory to which DuckDB spills.", rich_help_panel=_DATABASE)]
StatementTimeout = Annotated[
    float | None, typer.Option(min=0.001, help="Seconds that a statement may take.", rich_help_panel=_DATABASE)
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show where an unexpected error came from.")]
Follow = Annotated[
    Literal["auto", "json", "none"],
    typer.Option(
        "--progress", help="On stderr: for people, as JSON (an object a line), or none; auto is none with --json."
    ),
]
Repair = Annotated[
    bool,
    typer.Option(
        "--repair",
        help="Merge classes where this release and earlier ones would tell too much together; see `history`.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress; the same as --progress none.")]
ONLY_POLICY = "If not given: policy.yml, or the only policy in the working directory."
PolicyFile = Annotated[Path, typer.Argument(help=f"The policy, a YAML file. {ONLY_POLICY}", show_default=False)]
About = Annotated[
    str | None,
    typer.Argument(
        metavar="POLICY|URL|FILE",
        help=f"A policy, a database (with TABLE), or a data file. {ONLY_POLICY}",
    ),
]
OtherTable = Annotated[str | None, typer.Argument(metavar="TABLE", help="The table, after a URL.")]
TrustOwner = Annotated[
    bool,
    typer.Option(
        "--trust-owner",
        help="PostgreSQL: let code of the table's owner run with this role's rights, as of a view.",
    ),
]
_READING = "How a file is read"
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a FILE holds names of columns, or data; columns without names are column0,"
        " column1 and so on.",
        rich_help_panel=_READING,
    ),
]
HERE = Path("policy.yml")  # where no policy is named
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, on failure too.")]

_ENDINGS = (".yml", ".yaml", ".json")
_KEYS = ("source", "release", "attributes")  # of every policy
_KEY = re.compile(rf"""(?:^|[{{,])\s*["']?({"|".join(_KEYS)})["']?\s*:""", re.MULTILINE)
_MOST_BYTES = 2**20

_LIMITS: dict[str, Any] = {
    "memory_limit": MemoryLimit,
    "threads": Threads,
    "temp_directory": TempDirectory,
    "statement_timeout": StatementTimeout,
}
LIMITS = tuple(_LIMITS)  # options of the commands that work on data
COMMON = ("verbose",)  # the options of every command
Command = Callable[..., int | None]


class Panel(StrEnum):
    """Groups of commands in the program's help."""

    RELEASE = "From a table to a release"
    CHOICE = "Choose and measure"
    HISTORY = "Runs and their records"
    JOBS = "New rows and jobs"
    UPKEEP = "Access and upkeep"


def command(
    app: typer.Typer, name: str, panel: Panel | None = None, *, as_json: bool = True, limits: bool = False
) -> Callable[[Command], Command]:
    """Register a command that takes a `Call` first; the options a `Call` is made of are added to its own.

    What the command returns is the exit code, 0 if nothing. Its errors become messages and exit codes here.

    limits: it works on data, and takes limits for its database sessions.
    """

    def register(function: Command) -> Command:
        @functools.wraps(function)
        def called(**values: Any) -> None:
            given = {key: values.pop(key) for key in _LIMITS if key in values}
            call = Call(_options(given), values.pop("json", False), values.pop("verbose"))
            _end(call, lambda: function(call, **_discovered(function, values)))

        _set_signature(called, function, as_json, limits)
        app.command(name, rich_help_panel=panel)(called)
        return function

    return register


def with_default(name: str) -> type[TyperGroup]:
    """Make a group of commands of which one is meant where none is named: `sqlanon associations policy.yml`."""

    class WithDefault(TyperGroup):
        def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
            """Put the name of the command where it was left out."""
            is_named = bool(args) and args[0] in (*self.commands, *ctx.help_option_names)
            parsed: list[str] = super().parse_args(ctx, args if is_named else [name, *args])
            return parsed

    return WithDefault


def _options(limits: dict[str, Any]) -> EngineOptions:
    """The limits of sessions; one that no engine follows is a wrong command line."""
    try:
        return session_limits.EngineOptions(**limits)
    except PolicyError as error:
        raise typer.BadParameter(str(error)) from None


def _discovered(function: Command, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a command, with the policy, or the catalog, of the working directory where none is given.

    Raises PolicyError where the command is about one policy, and the directory has several.
    """
    if values.get("policy") is not None or values.get("url") is not None:
        return values
    if any(part.default is HERE for part in inspect.signature(function).parameters.values()):
        return {**values, "policy": policy_here() or HERE}
    if not {"url", "policy"} <= values.keys():
        return values
    policies = [HERE] if HERE.is_file() else policies_here()
    if len(policies) == 1:
        return {**values, "policy": policies[0]}
    here = sessions.LOCAL_CATALOG
    return {**values, "url": embedded.url_of_file(here)} if Path(here).is_file() else values


def policy_here() -> Path | None:
    """Find the policy of the working directory: policy.yml, or the only one there; None where there is none.

    Raises PolicyError where there are several.
    """
    policies = [HERE] if HERE.is_file() else policies_here()
    if len(policies) > 1:
        raise PolicyError(
            f"Which policy? There are several here: {', '.join(map(str, policies))}. Give one of them, such as"
            f" {shlex.quote(str(policies[0]))}."
        )
    return next(iter(policies), None)


def policies_here() -> list[Path]:
    """List the policies in the working directory, by their keys; what is wrong with one is said when it is read."""
    named = [path for path in sorted(Path().iterdir()) if path.suffix.lower() in _ENDINGS and path.is_file()]
    return [path for path in named if _is_policy(path)]


def _is_policy(path: Path) -> bool:
    try:
        text = documents.read_bounded(path, "file", _MOST_BYTES)
    except SqlanonError:
        return False
    keys = {match.group(1) for match in _KEY.finditer(text)}
    return keys.issuperset(_KEYS)


def _set_signature(called: Callable[..., None], function: Command, as_json: bool, limits: bool) -> None:
    """Give the registered function the parameters that Typer is to see."""
    own = [_named(part) for part in list(inspect.signature(function, eval_str=True).parameters.values())[1:]]
    added = [_option(key, kind, None) for key, kind in _LIMITS.items()] if limits else []
    if as_json:
        added.insert(0, _option("json", Json, False))
    added.append(_option("verbose", Verbose, False))
    parameters = [*(part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in own), *added]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {part.name: part.annotation for part in parameters}
    del called.__wrapped__  # type: ignore[attr-defined]


def _named(part: inspect.Parameter) -> inspect.Parameter:
    """An argument with the name that usage, help and errors call it by, in capitals as in the guides: RUN, not run.

    The policy of the working directory is found when the command is called; see `_discovered`.
    """
    if part.default is HERE:
        part = part.replace(default=None)
    info = part.annotation.__metadata__[0]
    if not isinstance(info, ArgumentInfo) or info.metavar is not None:
        return part
    named = copy.copy(info)
    named.metavar = part.name.upper()
    return part.replace(annotation=Annotated[part.annotation.__origin__, named])


def _option(name: str, kind: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _end(call: Call, work: Callable[[], int | None]) -> NoReturn:
    """Do the work, write all output, and end with the exit code."""
    try:
        code = _worked(call, work)
        sys.stdout.flush()
    except UnwrittenOutput as error:
        _forget_output()
        call.note(f"Error: The output could not be written: {error.strerror}.")
        code = SqlanonError.exit_code
    raise typer.Exit(code)


def _worked(call: Call, work: Callable[[], int | None]) -> int:
    """Do the work, and report the error that ends it; the exit code."""
    try:
        with _notices(call):
            return work() or 0
    except OutputError as error:
        _forget_output()
        return report(dataclasses.replace(call, json=False), error, error.exit_code)
    except SqlanonError as error:
        return report(call, error, error.exit_code)
    except KeyboardInterrupt:
        return report(call, Cancelled("Interrupted."), INTERRUPTED)
    except (UnwrittenOutput, BrokenPipeError):
        raise  # Typer ends quietly when nobody reads any more
    except Exception as error:
        return _report_unexpected(call, error)


@contextlib.contextmanager
def _notices(call: Call) -> Iterator[None]:
    """Inside, tell on stderr, once, what is to be known about the place of the catalog in use."""
    texts: set[str] = set()
    with warnings.catch_warnings():
        show = warnings.showwarning

        def tell(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, Notice):
                show(message, category, *place, **more)
            elif str(message) not in texts:
                texts.add(str(message))
                call.note(str(message))

        warnings.showwarning = tell
        warnings.simplefilter("always", Notice)
        yield


def _forget_output() -> None:
    """Send the rest of stdout nowhere, so that the end of the process does not fail by it."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def report(call: Call, error: Exception, code: int) -> int:
    """Print an expected error: as sentences, or as one JSON object; its exit code."""
    described = error_object(error, code)
    if call.json:
        call.emit({"error": described})
    else:
        call.note("\n".join(["Error: " + "\n  ".join(described["problems"]), *described["notes"]]))
    return code


def error_object(error: Exception, code: int) -> dict[str, Any]:
    """An error as programs read it; a URL that was quoted in it has lost its password."""
    problems = error.problems if isinstance(error, PolicyError) else str(error).splitlines()
    return {
        "type": type(error).__name__,
        "message": scrubbed(str(error)),
        "problems": [scrubbed(problem) for problem in problems or [type(error).__name__]],
        "notes": [scrubbed(note) for note in getattr(error, "__notes__", [])],
        "exit_code": code,
    }


def _report_unexpected(call: Call, error: Exception) -> int:
    """One line that holds no text of the error, which may quote data; all of it with -v."""
    if call.verbose:
        traceback.print_exception(error)
    what = f"An unexpected error ({type(error).__name__}); please report it."
    if call.json:
        call.emit({"error": {"type": type(error).__name__, "message": what, "problems": [what], "exit_code": 1}})
    else:
        call.note(f"Error: {what}" + ("" if call.verbose else " -v shows where it came from."))
    return 1


def expanded(text: str) -> str:
    """A URL or path with `${NAME}` replaced by the environment's value, so that a password needs not be typed."""
    value = environment.expanded(text)
    environment.require_set(value)
    return value


def reading_by(header: bool | None) -> ReadOptions | None:
    """Describe how a file is read whose header is said on the command line; None where nothing is said."""
    return None if header is None else read_options.ReadOptions(header=header)


def listed(given: list[str] | None) -> list[str]:
    """Read the names of an option: one is a list with commas; each of several is a name as it stands."""
    if given is None or len(given) != 1:
        return given or []
    return [name.strip() for name in given[0].split(",")]
