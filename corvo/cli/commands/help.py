"""Help of a group of commands: in sections, each line whole.

A section is the `rich_help_panel` of a command; without rich, typer itself puts all commands into one list and cuts
their lines.
"""

import re
from typing import Any

from typer.core import TyperGroup

_SENTENCE = re.compile(r"(.+?)(?:\.(?:\s|$)|\n\n|$)", re.DOTALL)

JOBS = "Jobs"
MANY_JOBS = "Many jobs"
QUEUES = "Queues, schedules, batches"
WATCH = "Watch"
SERVER = "Server and cluster"
ACCESS = "Keys and tenants"
TOOLS = "Tools"
SECTIONS = (JOBS, MANY_JOBS, QUEUES, WATCH, SERVER, ACCESS, TOOLS)  # in this order


class GroupedHelp(TyperGroup):
    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in SECTIONS}
        for name in self.list_commands(ctx):
            command: Any = self.get_command(ctx, name)
            if not command.hidden:
                title = getattr(command, "rich_help_panel", None) or "Commands"
                sections.setdefault(title, []).append((name, first_sentence(command.help or "")))
        widest = max((len(name) for rows in sections.values() for name, _ in rows), default=0)
        for title, rows in sections.items():
            if not rows:
                continue
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, line in rows])


def first_sentence(text: str) -> str:
    found = _SENTENCE.match(text.strip())
    return " ".join(found[1].split()) if found else ""
