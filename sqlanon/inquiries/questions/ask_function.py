"""The function of PostgreSQL by which roles ask of a table that they may not read, as a script.

It starts `sqlanon ask` on the database's server. The program opens a session of its own, so that no ROLLBACK of the
caller's takes a question back, and its history is the one of all other questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from sqlanon.engines.dialects import Dialect, dialect_of_url
from sqlanon.errors import PolicyError
from sqlanon.inquiries.questions.ask import require_auditable
from sqlanon.inquiries.questions.ask_with_noise import require_budgeted
from sqlanon.policy import Policy
from sqlanon.sql import Expression, Identifier, Relation, Text, checked_name
from sqlanon.support.documents import is_text


@dataclass(frozen=True)
class AskFunction:
    """A function of questions: its name with its schema, the roles that own and call it, and the command that it runs.

    policy, python: on the database's server, the policy's file and the interpreter that the program is installed for.
    """

    name: str
    runner: str
    analyst: str
    policy: Path
    python: Path


def ask_function_script(policy: Policy, wanted: AskFunction) -> str:
    """The statements that create the function, and let the analyst's role call it.

    Raises:
        PolicyError: questions to the source can't be answered, or not by a function of its database; a name is wrong.
    """
    url = policy.source.url or ""
    dialect = dialect_of_url(url)
    dialect.has_ask_functions.require("source: ")
    if policy.is_private:
        require_budgeted(policy)
    else:
        require_auditable(policy)
    if policy.catalog.url not in (None, url):
        raise PolicyError("catalog.url: a function asks with the history in its own database; leave the URL out.")
    function = _name(wanted.name, policy.catalog.schema_, dialect)
    if any("$$" in name for name in (wanted.name, wanted.runner, wanted.analyst)):
        raise PolicyError("A name with $$ in it would end a block of the script early: choose another.")
    if wanted.runner == wanted.analyst:
        raise PolicyError("Runner and analyst are two roles: the runner reads the table. Give each a name of its own.")
    render, schema = dialect.renderer(), str(function.schema)
    body = render.rendered(
        "inquiries/questions/ask_function_body", {"command": _command(wanted), "is_private": policy.is_private}
    )
    types = "text, numeric" if policy.is_private else "text"
    return render.rendered(
        "inquiries/questions/create_ask_function",
        {
            "analyst": Identifier(wanted.analyst),
            "analyst_literal": Text(wanted.analyst),
            "body": Markup(body),
            "database": Identifier(_database(dialect, url)),
            "function": function,
            "is_private": policy.is_private,
            "runner": Identifier(wanted.runner),
            "runner_literal": Text(wanted.runner),
            "schema": Identifier(schema),
            "schema_literal": Text(schema),
            "signature": Text(f"{function}({types})"),
            "taken": Text(_taken(function, wanted.runner)),
        },
    )


def _name(text: str, catalog: str, dialect: type[Dialect]) -> Relation:
    """Read the function's name."""
    function = dialect.stored(Relation.parse(text))
    if function.schema is None or function.catalog is not None:
        raise PolicyError(f"'{text}' names no schema: write schema.function.")
    if function.schema == catalog:
        raise PolicyError(f"Schema {Identifier(catalog)} is the catalog's, and its runner's alone: choose another.")
    for part in function.parts:
        checked_name(part)
    return function


def _command(wanted: AskFunction) -> Expression:
    """The words of the command, as a list of Python's, without characters that end a quotation in SQL."""
    words = [str(wanted.python), "-I", "-X", "utf8", "-m", "sqlanon", "ask", str(wanted.policy), "--json"]
    if not all(map(is_text, words)):
        raise PolicyError("The path of the policy or of Python is not text in UTF-8.")
    if not wanted.python.is_absolute():
        raise PolicyError(f"The server would look elsewhere for '{wanted.python}': write the whole path of Python.")
    return Markup(ascii(words).replace("$", r"\x24"))


def _database(dialect: type[Dialect], url: str) -> str:
    name = dialect.database_name(url)
    if not name:
        raise PolicyError("source.url: names no database, and grants need its name.")
    return name


def _taken(function: Relation, runner: str) -> str:
    schema = Identifier(str(function.schema))
    return (
        f"Roles other than superusers and {Identifier(runner)} may create in schema {schema}, or own {function}:"
        " analysts might call a function of theirs. Revoke that, or choose another name."
    )
