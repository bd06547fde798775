"""Launchers of a job outside of the database: lines of a crontab, and the units of systemd."""

from __future__ import annotations

import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from sqlanon.catalog import Job
from sqlanon.errors import PolicyError
from sqlanon.jobs.cron import CronSchedule
from sqlanon.jobs.environment import Environment

SECRETS = Path("/etc/sqlanon")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")


@dataclass(frozen=True)
class JobLaunch:
    """The launch of a job: `job run` with the environment it needs, which is written down without secrets.

    catalog: what tells the job's catalog from all others.
    directory: where it is started from, as URLs and files may be relative; None where nothing is.
    policy: whose catalog the job is in; None where the environment names the catalog.

    Raises PolicyError where any of it has a line break or another control character.
    """

    job: Job
    catalog: str
    environment: Environment
    schedule: CronSchedule
    directory: Path | None = None
    policy: Path | None = None

    def __post_init__(self) -> None:
        places = {"the catalog's name": self.catalog, "the directory": self.directory, "the policy's path": self.policy}
        written = {what: str(place) for what, place in places.items() if place is not None} | self.environment.shown
        wrong = [what for what, text in written.items() if not text.isprintable()]
        if wrong:
            raise PolicyError(f"A schedule is written in lines, and {wrong[0]} has a character that can't be printed.")

    @property
    def _arguments(self) -> list[str]:
        policy = [] if self.policy is None else ["--policy", str(self.policy)]
        return ["job", "run", self.job.name, *policy, "--quiet"]

    @property
    def command(self) -> str:
        """The command for a shell."""
        return shlex.join([_program(), *self._arguments])

    @property
    def passwords(self) -> Path:
        """The file of passwords, as libpq reads it."""
        return SECRETS / f"{self.job.name}.pgpass"

    @property
    def secrets(self) -> Path:
        """The file of the environment's secrets."""
        return SECRETS / f"{self.job.name}.env"

    def crontab(self, user: str | None = None) -> str:
        """The line of a crontab, with its comments; `user` is a column of files in /etc/cron.d alone."""
        passwords = {"PGPASSFILE": str(self.passwords)} if self.environment.has_password else {}
        values = [f"{name}={shlex.quote(value)}" for name, value in (self.environment.shown | passwords).items()]
        run = " ".join([*values, self.command])
        if self.environment.secret:
            run = f"set -a && . {self.secrets} && set +a && {run}"
        if self.directory is not None:
            run = f"cd {shlex.quote(str(self.directory))} && {run}"
        escaped = run.replace("%", r"\%")  # cron takes a plain one for the end of the line
        line = " ".join([self.schedule.text, *([_checked(user)] if user is not None else []), escaped])
        return f"# {_title(self.job)}; in the time zone of this machine.\n{self.mark}\n{self._advice}{line}\n"

    def service(self, user: str) -> str:
        """The service unit; it runs as `user`."""
        values = dict(self.environment.shown)
        credential = secrets = ""
        if self.environment.has_password:
            values.pop("PGPASSFILE", None)
            credential = f"LoadCredential=pgpass:{self.passwords}\nEnvironment=PGPASSFILE=%d/pgpass\n"
        if self.environment.secret:
            secrets = f"EnvironmentFile={self.secrets}\n"
        where = "" if self.directory is None else f"WorkingDirectory={_literal(str(self.directory))}\n"
        variables = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in values.items())
        words = [_quoted(_program()), *(_quoted(word) if word.startswith("/") else word for word in self._arguments)]
        return (
            f"# {_title(self.job)}.\n{self.mark}\n{self._advice}"
            f"[Unit]\nDescription={_literal(_title(self.job))}\nWants=network-online.target\nAfter=network-online.target\n\n"
            f"[Service]\nType=oneshot\nUser={_checked(user)}\n{where}{credential}{secrets}{variables}"
            f"ExecStart={' '.join(words).replace('$', '$$')}\n"
        )

    def timer(self) -> str:
        """The timer unit."""
        calendar = "".join(f"OnCalendar={line}\n" for line in self.schedule.calendar)
        return (
            f"{self.mark}\n[Unit]\nDescription=When to run: {_literal(_title(self.job))}\n\n"
            f"[Timer]\n{calendar}Persistent=true\n\n"
            "[Install]\nWantedBy=timers.target\n"
        )

    def files(self, scheduler: str, user: str) -> dict[str, str]:
        """The files of a scheduler, by name."""
        name = f"sqlanon-{self.job.name}"
        if scheduler == "cron":
            return {name: self.crontab(user)}
        return {f"{name}.service": self.service(user), f"{name}.timer": self.timer()}

    @property
    def mark(self) -> str:
        """The line by which files of this job are known from those of another catalog's job of the same name."""
        return f"# The job is in the catalog {self.catalog}."

    @property
    def _advice(self) -> str:
        advice = ""
        if self.environment.has_password:
            advice += (
                f"# The password is in {self.passwords}, for its owner alone (chmod 600): a line"
                " host:port:database:role:password.\n"
            )
        if self.environment.secret:
            lines = ", ".join(f"{name}='...'" for name in self.environment.secret)
            advice += f"# Secrets are in {self.secrets}, for its owner alone (chmod 600), each on a line: {lines}.\n"
        return advice


def _checked(user: str) -> str:
    """A user's name; PolicyError where it is none that schedulers take."""
    if not _USER.fullmatch(user):
        raise PolicyError(
            "--user: a user's name is of at most 32 letters, digits, _, . and -, and begins with a letter or _."
        )
    return user


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
    program = Path(sys.executable).with_name("sqlanon")
    return str(program) if program.exists() else "sqlanon"
