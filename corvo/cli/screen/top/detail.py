"""Texts that fill the screen below the header: a job with its why, a shard with its replicas, help. Pure."""

from collections.abc import Iterable, Sequence

import msgspec
from rich.cells import cell_len
from rich.text import Text

from corvo.cli.screen.figures import age
from corvo.cli.screen.show import STATE_STYLES, json_text, plain, priority, when
from corvo.cli.screen.top.jobs import GLYPHS
from corvo.cli.screen.top.looks import Look
from corvo.client.answers import AttemptView, JobErrorView, JobView, ShardView, WhyView

LABEL_WIDTH = 12
DOCUMENT_LINES_MAX = 200  # of a payload, a result, a checkpoint

HELP = """\
MOVE      up down j k PgUp PgDn; g G: first and last row
PANES     their numbers, Tab: the next one; Enter opens a row, Esc goes back
          a queue or a worker opens its jobs, a job its page with the why
FILTER    / then words; Enter applies them, an empty line removes them
          panes of jobs take the filters of the API:
            queue=mail state=dead,retrying tags.tenant=acme attempt_min=2
            created_after=1h error_contains=timeout payload_jq='.amount > 100'
            a word alone is searched in the payload; or the JSON of a search
          other panes show the rows in which every word occurs
SORT      < > choose a column, s turns it around, S is the pane's own order
ACT       P pauses or resumes a queue
          R retry, C cancel, A approve, X reject a job; y confirms
          Space marks a job, U unmarks all; R C A X then take all marked jobs
UPDATES   + - interval, p freezes, r asks now
COMMANDS  : then the name of a pane with a filter, or
            job ID, queue NAME, worker ID, filter WORDS, sort COLUMN,
            pause NAME, resume NAME, retry ID, cancel ID, approve ID, reject ID,
            interval SECONDS, help, quit
LEAVE     q or Ctrl-C"""


def help_lines(width: int) -> list[Text]:
    found = []
    for one in HELP.splitlines():
        text = Text(one)
        text.stylize("bold", 0, LABEL_WIDTH - 2)
        found += _wrapped(text, width)
    return found


def job_lines(look: Look, width: int) -> list[Text]:
    job = look.job
    if job is None:
        return [plain(look.refusals.get("job", "asking for the job"))]
    lines = _field("job", job.id, width)
    lines += _state(job, look, width)
    if look.why is not None:
        lines += _why(look.why, width)
    elif sentence := look.refusals.get("why"):
        lines += _field("why", sentence, width)
    for name, text in _facts(job, look.now_ns):
        lines += _field(name, text, width)
    for name in ("payload", "progress", "checkpoint", "result", "tags"):
        lines += _document(name, getattr(job, name), width)
    lines += _attempts(job.attempts, look.now_ns, width)
    if not job.attempts:
        lines += _errors(job.errors, look.now_ns, width)
    return lines


def shard_lines(shard: ShardView, width: int) -> list[Text]:
    lines = _field("shard", str(shard.shard), width)
    if shard.error:
        lines += _field("trouble", shard.error, width, "bold red")
    facts: Sequence[tuple[str, object]] = (
        ("here", f"{shard.state} on {shard.node_id}"),
        ("leader", shard.leader_id or "none"),
        ("term", shard.term),
        ("commit", f"{shard.commit_index}, applied {shard.applied_index}"),
        ("log", f"{shard.log_entries} entries"),
        ("memory", f"{shard.memory_bytes / 2**20:.0f} MiB"),
        ("workers", f"{shard.fetches_parked} fetches wait, {shard.leases} leases"),
        ("voters", ", ".join(shard.members.voters)),
        ("learners", ", ".join(shard.members.learners)),
        ("leaving", ", ".join(shard.members.outgoing)),
    )
    for name, value in facts:
        lines += _field(name, str(value), width) if value != "" else []
    for replica in shard.replicas:
        lag = "?" if replica.lag is None else str(replica.lag)
        text = f"{replica.role}, term {replica.term}, applied {replica.applied_index}, {lag} behind"
        heard = "" if replica.last_contact_ms is None else f", heard {replica.last_contact_ms:.0f} ms ago"
        trouble = f"; {replica.error}" if replica.error else ""
        lines += _field(replica.node_id, text + heard + trouble, width, "red" if replica.error else "")
    for transfer in shard.transfers:
        text = f"{transfer.sender} to {transfer.receiver}, {transfer.records} records, {transfer.bytes} bytes"
        lines += _field("snapshot", text, width)
    return lines


def _state(job: JobView, look: Look, width: int) -> list[Text]:
    about = [f"attempt {job.attempt} of {job.max_retries}", f"priority {priority(job.priority)}"]
    if job.cancel_requested:
        about.append("cancel requested")
    text = Text(f"{'state':<{LABEL_WIDTH}}", "dim")
    text.append(f"{GLYPHS.get(job.state, '?')} {job.state}", STATE_STYLES.get(job.state, ""))
    text.append(f" · {' · '.join(about)} · created {age(job.created_at, look.now_ns)} ago", "")
    return _wrapped(text, width)


def _why(why: WhyView, width: int) -> list[Text]:
    lines = _field("why", why.reason, width, "bold")
    lines += _field("", why.message, width)
    if why.also:
        lines += _field("", f"then: {', '.join(why.also)}", width)
    if why.until:
        lines += _field("", f"until {when(why.until)}", width)
    return lines


def _facts(job: JobView, now_ns: int) -> Iterable[tuple[str, str]]:
    yield "queue", job.queue
    worker = f"{job.worker_id} on {job.hostname}" if job.hostname else job.worker_id
    yield "worker", worker
    for name in ("created", "scheduled", "started", "completed", "failed", "lease_expires", "expire"):
        if moment := getattr(job, f"{name}_at"):
            yield name.replace("lease_expires", "lease until"), f"{when(moment)} ({age(moment, now_ns)} ago)"
    yield "hold reason", job.hold_reason
    yield "waits for", ", ".join(job.waiting_for)
    yield "unique key", job.unique_key
    yield "batch", job.batch_id
    yield "chain", job.chain_id + (f", step {job.chain_step}" if job.chain_step is not None else "")
    yield "schedule", job.schedule_id
    yield "parent", job.parent_id


def _document(name: str, value: object, width: int) -> list[Text]:
    """JSON in one line where it fits, else indented."""
    if value is None:
        return []
    text = json_text(value)
    if cell_len(text) > width - LABEL_WIDTH:
        text = msgspec.json.format(text)
    lines = text.splitlines()
    cut = [f"… {len(lines) - DOCUMENT_LINES_MAX} more lines"] if len(lines) > DOCUMENT_LINES_MAX else []
    found: list[Text] = []
    for place, one in enumerate([*lines[:DOCUMENT_LINES_MAX], *cut]):
        found += _field(name if place == 0 else "", one, width)
    return found


def _attempts(attempts: Sequence[AttemptView], now_ns: int, width: int) -> list[Text]:
    lines = []
    for one in reversed(attempts):
        ended = f", ended {age(one.ended_at, now_ns)} ago" if one.ended_at else ""
        text = f"{one.outcome}, worker {one.worker_id}, started {age(one.started_at, now_ns)} ago{ended}"
        lines += _field(f"attempt {one.attempt}", text, width)
        lines += _error(one.error, one.backtrace, width)
    return lines


def _errors(errors: Sequence[JobErrorView], now_ns: int, width: int) -> list[Text]:
    lines = []
    for one in reversed(errors):
        lines += _field(f"attempt {one.attempt}", f"failed {age(one.created_at, now_ns)} ago", width)
        lines += _error(one.error, one.backtrace, width)
    return lines


def _error(error: str | None, backtrace: str | None, width: int) -> list[Text]:
    lines = []
    for one in [*(error or "").splitlines(), *(backtrace or "").splitlines()[:DOCUMENT_LINES_MAX]]:
        lines += _field("", one, width, "red")
    return lines


def _field(name: str, value: str, width: int, style: str = "") -> list[Text]:
    """Nothing for an empty value; further lines are indented as the first one."""
    if not value:
        return []
    text = plain(value)
    text.stylize(style)
    parts = _wrapped(text, max(1, width - LABEL_WIDTH))
    labels = [f"{plain(name).plain:<{LABEL_WIDTH}}"[:LABEL_WIDTH], *[" " * LABEL_WIDTH] * len(parts)]
    return [Text(label, "dim").append_text(part) for label, part in zip(labels, parts, strict=False)]


def _wrapped(text: Text, width: int) -> list[Text]:
    """By characters: nothing is lost, and an id or a path stays copyable."""
    found = []
    while text.cell_len > width:
        head, tail = text.divide([max(1, _fits(text.plain, width))])
        found.append(head)
        text = tail
    return [*found, text]


def _fits(text: str, width: int) -> int:
    """How many characters fit, preferably whole words."""
    used = 0
    for number, one in enumerate(text):
        used += cell_len(one)
        if used > width:
            space = text.rfind(" ", width // 2, number)
            return space + 1 if space > 0 else number
    return len(text)
