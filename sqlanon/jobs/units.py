"""What starts a job outside of the database: lines of a crontab, and the units of systemd."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from sqlanon.catalog import Job
from sqlanon.engines.urls import redacted
from sqlanon.jobs.moments import Moments

SECRETS = Path("/etc/sqlanon")


@dataclass(frozen=True)
class Start:
    """How a job is started: `job run` on a catalog's URL, which is written down without its password.

    directory: where it is started from, as URLs and files may be relative; None where nothing is.
    """

    job: Job
    url: str
    moments: Moments
    directory: Path | None = None

    @property
    def command(self) -> str:
        """What a shell runs."""
        return f"{shlex.quote(_program())} job run {self.job.name} --quiet"

    @property
    def has_secret(self) -> bool:
        """Whether the URL holds a password, which has to come from a file then."""
        return redacted(self.url) != self.url

    @property
    def passwords(self) -> Path:
        """The file of passwords, as libpq reads it."""
        return SECRETS / f"{self.job.name}.pgpass"

    def crontab(self, user: str | None = None) -> str:
        """The line of a crontab, with its comments; `user` is a column of files in /etc/cron.d alone."""
        passwords = f"PGPASSFILE={self.passwords} " if self.has_secret else ""
        run = f"{passwords}SQLANON_URL={shlex.quote(redacted(self.url))} {self.command}"
        if self.directory is not None:
            run = f"cd {shlex.quote(str(self.directory))} && {run}"
        escaped = run.replace("%", r"\%")  # cron takes a plain one for the end of the line
        line = " ".join([self.moments.text, *([user] if user is not None else []), escaped])
        return f"# {_title(self.job)}; in the time zone of this machine.{self._advice('#')}\n{line}\n"

    def service(self, user: str) -> str:
        """The service unit; it runs as `user`."""
        credential = ""
        if self.has_secret:
            credential = f"LoadCredential=pgpass:{self.passwords}\nEnvironment=PGPASSFILE=%d/pgpass\n"
        where = "" if self.directory is None else f"WorkingDirectory={_literal(str(self.directory))}\n"
        return (
            f"# {_title(self.job)}.{self._advice('#')}\n"
            f"[Unit]\nDescription={_literal(_title(self.job))}\nWants=network-online.target\nAfter=network-online.target\n\n"
            f"[Service]\nType=oneshot\nUser={user}\n{where}{credential}"
            f"Environment={_quoted('SQLANON_URL=' + redacted(self.url))}\n"
            f"ExecStart={_quoted(_program()).replace('$', '$$')} job run {self.job.name} --quiet\n"
        )

    def timer(self) -> str:
        """The timer unit."""
        calendar = "".join(f"OnCalendar={line}\n" for line in self.moments.calendar)
        return (
            f"[Unit]\nDescription=When to run: {_literal(_title(self.job))}\n\n"
            f"[Timer]\n{calendar}Persistent=true\n\n"
            "[Install]\nWantedBy=timers.target\n"
        )

    def files(self, scheduler: str, user: str) -> dict[str, str]:
        """The files of a scheduler, by name."""
        name = f"sqlanon-{self.job.name}"
        if scheduler == "cron":
            return {name: self.crontab(user)}
        return {f"{name}.service": self.service(user), f"{name}.timer": self.timer()}

    def _advice(self, mark: str) -> str:
        if not self.has_secret:
            return ""
        return (
            f"\n{mark} The password is in {self.passwords}, for its owner alone (chmod 600): a line"
            " host:port:database:role:password."
        )


def _title(job: Job) -> str:
    return f"sqlanon job {job.name}, from {_plain(job.source)} to {_plain(job.release)}"


def _plain(text: str) -> str:
    """A name in one line."""
    return "".join(char for char in text if char.isprintable())


def _literal(text: str) -> str:
    """A text of a unit file, where `%` begins a specifier."""
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    """A word of a unit file."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{_literal(escaped)}"'


def _program() -> str:
    """This program, as others find it."""
    beside = Path(sys.executable).with_name("sqlanon")
    return str(beside) if beside.exists() else "sqlanon"
