"""The lines above every pane: health, leaders, lag, jobs by state, rates. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from corvo.cli.screen.figures import age, short, sparkline
from corvo.cli.screen.show import plain, restarts, span
from corvo.cli.screen.top.looks import SAMPLES_MAX, Look, Past, Rates
from corvo.client.answers import ClusterStatus, QueueView, ShardView

HEALTH_GLYPHS = {"healthy": "●", "degraded": "▲", "unavailable": "✖"}  # told apart without colours
HEALTH_STYLES = {"healthy": "green", "degraded": "yellow", "unavailable": "bold red"}
LABEL_WIDTH = 20  # before a sparkline: its name, its figure
TALL = 20  # lines of a screen that has room for sparklines
# What asks for attention first: a narrow screen cuts the line off at the right.
_COUNTS = (
    ("pending", ""),
    ("active", "cyan"),
    ("dead", "red"),
    ("retrying", "magenta"),
    ("held", "yellow"),
    ("scheduled", ""),
)
_RATES = (("enqueued", "yellow"), ("completed", "green"), ("failed", "red"))


class Link(NamedTuple):
    """How the view stands to the server now."""

    interval_s: float
    is_frozen: bool = False
    is_read_only: bool = False
    trouble: str = ""  # why the newest look is an old one
    age_s: float = 0.0  # of the newest look
    retry_in_s: float = 0.0


def header(past: Past, link: Link, width: int, height: int) -> list[Text]:
    look = past.look
    lines = [_first(look, link, width)]
    if link.trouble:
        lines.append(_alert(f"trying again in {max(0.0, link.retry_in_s):.0f} s: {link.trouble}", "bold red"))
    lines += _alerts(look)
    lines.append(_leaders(look.status, width))
    lines.append(_jobs(look.queues, width))
    lines += sparklines(past, width) if height >= TALL else [_rates(past.rates)]
    return [_one_line(line, width) for line in lines]


def connecting(trouble: str, link: Link) -> list[Text]:
    """Before the first answer."""
    lines = [Text("corvo top: connecting", "bold")]
    if trouble:
        lines = [_alert(trouble, "bold red"), Text(f"trying again in {max(0.0, link.retry_in_s):.0f} s, q quits")]
    return lines


def sparklines(past: Past, width: int) -> list[Text]:
    samples = past.history[-max(1, min(SAMPLES_MAX, width - LABEL_WIDTH)) :]
    return [
        Text.assemble(
            f"{name + '/s':<12}{short(getattr(past.rates, name)):>6}  ",
            (sparkline([getattr(one, name) for one in samples]), style),
        )
        for name, style in _RATES
    ]


def leaders(groups: Sequence[ShardView]) -> list[tuple[str, str]]:
    """Each node that leads, with its shards as ranges; last the shards without a leader."""
    led: dict[str, list[int]] = {}
    for group in groups:
        led.setdefault("" if group.error else group.leader_id, []).append(group.shard)
    return [(name or "none", ranges(led[name])) for name in sorted(led, key=lambda name: (not name, name))]


def ranges(numbers: Sequence[int]) -> str:
    """0-3,7"""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in found)


def _first(look: Look, link: Link, width: int) -> Text:
    """Health at the left, the state of the view at the right: the right side is never cut off."""
    status = look.status
    if status is None:
        left = Text.assemble(("? health is not known", "yellow"))
    else:
        health = f"{HEALTH_GLYPHS.get(status.status, '✖')} {status.status}"
        fsync = "fsync on" if status.fsync else "fsync OFF"
        facts = (f"Corvo {status.version}", status.mode, status.node_id, _counted(status.shards, "shard"), fsync)
        left = Text.assemble((health, HEALTH_STYLES.get(status.status, "bold red")), *(f" · {one}" for one in facts))
    right = Text()
    if link.trouble:
        right.append(f" STALE {link.age_s:.0f} s ", "bold reverse red").append(" ")
    if link.is_frozen:
        right.append(" FROZEN ", "reverse").append(" ")
    if link.is_read_only:
        right.append("read-only ")
    right.append(f"every {link.interval_s:g} s" if link.interval_s else "")
    left.truncate(max(0, width - right.cell_len - 1), overflow="ellipsis")
    left.pad_right(width - left.cell_len - right.cell_len)
    return left.append_text(right)


def _alerts(look: Look) -> list[Text]:
    """Why it is not healthy, what happened to processes, what the server refused; no lines where nothing did."""
    lines = []
    status = look.status
    if status is not None and status.reasons:
        more = f" (and {len(status.reasons) - 1} more)" if len(status.reasons) > 1 else ""
        lines.append(_alert(status.reasons[0] + more, HEALTH_STYLES.get(status.status, "bold red")))
    if status is not None and (any(status.restarts.values()) or status.incidents):
        text = Text(f"  restarts: {restarts(status)}", "yellow")
        if status.incidents:
            last = status.incidents[-1]
            text.append(f" · last {age(last.at, look.now_ns)} ago: {last.process}, ").append_text(plain(last.reason))
        lines.append(text)
    by_sentence: dict[str, list[str]] = {}
    for part, sentence in look.refusals.items():
        by_sentence.setdefault(sentence, []).append(part)
    lines += [_alert(f"{', '.join(parts)}: {sentence}", "bold red") for sentence, parts in by_sentence.items()]
    return lines


def _alert(sentence: str, style: str) -> Text:
    text = plain(f"  {sentence}".replace("\n", " "))
    text.stylize(style)
    return text


def _leaders(status: ClusterStatus | None, width: int) -> Text:
    if status is None:
        return Text("leaders ?")
    parts = []
    for name, shards in leaders(status.groups):
        part = plain(f"{name} {shards}")
        part.stylize("bold red" if name == "none" else "")
        parts.append(part)
    read_db = f"{status.mirror.lag_ms:.0f} ms" if status.mirror else "away"
    parts.append(Text(f"read.db {read_db}", "" if status.mirror else "bold red"))
    known = [group for group in status.groups if not group.error]
    if known:
        terms = {group.term for group in known}
        low, high = min(terms), max(terms)
        parts.append(Text(f"lag {short(max(group.commit_index - group.applied_index for group in known))}"))
        parts.append(Text(f"term {low}" if low == high else f"terms {low}-{high}"))
    return _joined("leaders  ", parts, width)


def _jobs(queues: Sequence[QueueView] | None, width: int) -> Text:
    if queues is None:
        return Text("jobs ?")
    parts = []
    for name, style in _COUNTS:
        count = sum(getattr(queue, name) for queue in queues)
        parts.append(Text(f"{name} {short(count)}", style if count else ""))
    if oldest_ms := max((queue.oldest_pending_age_ms or 0 for queue in queues), default=0):
        parts.append(Text(f"oldest {span(oldest_ms)}"))
    return _joined("jobs  ", [*parts, Text(_counted(len(queues), "queue"))], width)


def _joined(label: str, parts: Sequence[Text], width: int) -> Text:
    """Parts that do not fit are left out: half a number says something else. The first part may be cut."""
    text = Text(label)
    for place, part in enumerate(parts):
        gap = " · " if place else ""
        if not place or text.cell_len + len(gap) + part.cell_len <= width:
            text.append(gap).append_text(_own_style(part))
    return text


def _own_style(text: Text) -> Text:
    """As a part of another text, which has a style of its own."""
    part = Text(text.plain)
    for start, end, style in [(0, len(text.plain), text.style), *text.spans]:
        part.stylize(style, start, end)
    return part


def _rates(rates: Rates) -> Text:
    return Text(" · ".join(f"{name}/s {short(getattr(rates, name))}" for name, _ in _RATES))


def _counted(number: int, name: str) -> str:
    return f"{number} {name}" if number == 1 else f"{number} {name}s"


def _one_line(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line
