"""Labels of regions in the release, as SQL; `docs/labels.md` has the grammar for readers.

`NULL` stands for NULL alone; `25` for one value; `[25-34]` for a closed interval; `{Clerk, Sales}` for the values that
occur; braces also hold NULL beside values (`{NULL, 25-34}`). Members of sets are quoted like `"a, b"` where they could
be misread.
"""

from __future__ import annotations

from sqlanon.sql import Expression, Renderer, macro

EVERYTHING = "*"  # the region that holds every value, and a suppressed cell
NULL = "NULL"  # the region that holds NULL alone


def quote_member(render: Renderer, text: Expression, always: bool = False) -> Expression:
    """A text as a member of a set: in double quotes where it could be misread, or `always`.

    The expression repeats `text`, so pass a column or a cast of one. What is quoted must not depend on the engine's
    idea of white space or on a collation.
    """
    return macro("labels.quoted", text) if always else macro("labels.member", text, render.macro("collate", text))
