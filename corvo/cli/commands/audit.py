"""`corvo audit`: list, export and verify the audit log."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from corvo.cli.commands.requests import MISUSED, REFUSED, Commands, OutputFormat, ServerUrl, asking, stop
from corvo.cli.commands.times import HINT, moments
from corvo.cli.commands.watching import watchable
from corvo.client import DEFAULT_SERVER

if TYPE_CHECKING:
    from corvo.cli.screen.show_audit import Verified
    from corvo.model.audit_chain import Anchor

app = Commands(
    help="Who changed what: list, export and verify the audit log.",
    no_args_is_help=True,
)

PIECE_BYTES = 64 * 1024
OutcomeName = Literal["ok", "refused", "denied", "unknown"]
Namespace = Annotated[str, typer.Option(metavar="NAME", help="only this namespace")]
After = Annotated[int, typer.Option(metavar="SEQ", min=0, help="continue after this record")]


@app.command("list")
@watchable
def list_(
    principal: Annotated[str, typer.Option(metavar="NAME", help="only this key or person")] = "",
    method: Annotated[str, typer.Option(metavar="METHOD", help="only this HTTP method")] = "",
    path_prefix: Annotated[
        str, typer.Option(metavar="PATH", help="only paths that begin so, such as /api/v1/queues/")
    ] = "",
    namespace: Namespace = "",
    outcome: Annotated[OutcomeName | None, typer.Option(help="only these")] = None,
    since: Annotated[str | None, typer.Option(metavar="WHEN", help=f"only after this{HINT}")] = None,
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="only before this")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=1000, help="at most N")] = 50,
    offset: Annotated[int, typer.Option(metavar="N", min=0, help="leave out the newest N")] = 0,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """List changes, denied requests and audited reads, newest first.

    \b
    Examples:
      corvo audit list
      corvo audit list --principal ada@example.org --since 24h
      corvo audit list --path-prefix /api/v1/queues/ --outcome refused
      corvo audit list --output json | jq '.audit_logs[] | {principal, route, before, after}'
    """
    from corvo.cli.screen import show, show_audit  # lazy: rich
    from corvo.client.bodies import AuditLogsQuery  # lazy: msgspec

    between = moments(since=since, until=until)
    query = AuditLogsQuery(
        limit=limit,
        offset=offset,
        principal=principal,
        method=method,
        path_prefix=path_prefix,
        namespace=namespace,
        outcome=outcome or "",
        since=between["since"] or "",
        until=between["until"] or "",
        consistent=True,
    )
    with asking(server) as client:
        answer = client.audit_logs(query)
    show.answer(answer, output, lambda: show_audit.audit_logs(answer))


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="file to write; - is standard output")] = "-",
    after: After = 0,
    namespace: Namespace = "",
    server: ServerUrl = DEFAULT_SERVER,
) -> None:
    """Write the audit log as NDJSON, oldest record first, with its chain of hashes.

    A file is written beside and renamed when the export is complete.

    \b
    Examples:
      corvo audit export audit.ndjson
      corvo audit export --after 1200 | gzip > audit-1201.ndjson.gz
    """
    from corvo.cli.screen.show_progress import counting  # lazy: rich
    from corvo.client.audit_export import NotAnExport  # lazy: as below
    from corvo.client.bodies import AuditExportQuery  # lazy: msgspec

    with asking(server) as client:
        try:
            with _writing(file) as target, counting("records", None) as tell:
                for line in client.export_audit_logs(AuditExportQuery(after, namespace)):
                    target.write(line + b"\n")
                    tell()
        except NotAnExport as error:
            stop(REFUSED, str(error))
        except OSError as error:
            stop(REFUSED, f"{file} cannot be written: {error.strerror}")


@app.command()
def verify(
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="an export; - is standard input; none: ask the server")
    ] = None,
    expect: Annotated[
        str | None,
        typer.Option(metavar="SEQ:HASH", help="this record must have this hash, as an earlier verify has printed it"),
    ] = None,
    after: After = 0,
    server: ServerUrl = DEFAULT_SERVER,
    output: OutputFormat = "table",
) -> None:
    """Verify the chain of hashes of an export, or of the server's log. Exit code 1: it is broken.

    It prints the newest record as SEQ:HASH. Keep that elsewhere: with --expect, a later verify proves that nothing up
    to that record was changed since, not even by somebody who can write every file of the server.

    \b
    Examples:
      corvo audit verify
      corvo audit verify audit.ndjson
      corvo audit verify --expect 1200:5f0c…
      gunzip -c audit.ndjson.gz | corvo audit verify -
    """
    from corvo.cli.screen import show, show_audit  # lazy: rich
    from corvo.client.audit_export import NotAnExport  # lazy: as below
    from corvo.client.bodies import AuditExportQuery  # lazy: msgspec
    from corvo.model.audit_chain import BrokenChain, parse_anchor  # lazy: msgspec

    if file is not None and after:
        stop(MISUSED, "--after is for the server's log; a file begins where it begins")
    try:
        expected = None if expect is None else parse_anchor(expect)
    except ValueError as error:
        stop(MISUSED, f"--expect: {error}")
    try:
        if file is None:
            with asking(server) as client:
                found = _verify(client.export_audit_logs(AuditExportQuery(after)), expected)
        else:
            found = _verify(_read_lines(file), expected)
    except BrokenChain as broken:
        stop(REFUSED, f"the audit log is broken: {broken}", kind="BROKEN_CHAIN")
    except NotAnExport as error:
        stop(REFUSED, str(error), kind="BROKEN_CHAIN")
    except OSError as error:
        stop(REFUSED, f"{file} cannot be read: {error.strerror}")
    show.answer(found, output, lambda: show_audit.verified(found))


def _verify(lines: Iterable[bytes], expected: "Anchor | None") -> "Verified":
    from corvo.cli.screen import show_audit  # lazy: rich
    from corvo.model.audit_chain import ChainCheck  # lazy: msgspec

    check = ChainCheck(expected)
    for line in lines:
        check.take(line)
    newest = check.finish()
    assert check.begin is not None
    return show_audit.Verified(
        "ok", check.records, check.begin.after, newest.seq, newest.hash.hex(), check.begin.namespace
    )


def _read_lines(file: str) -> Iterator[bytes]:
    from corvo.client.audit_export import split_lines  # lazy: httpx

    if file == "-":
        yield from split_lines(iter(lambda: sys.stdin.buffer.read(PIECE_BYTES), b""))
        return
    with Path(file).open("rb") as source:
        yield from split_lines(iter(lambda: source.read(PIECE_BYTES), b""))


@contextmanager
def _writing(file: str) -> "Iterator[BinaryIO]":
    if file == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    beside = Path(f"{file}.part")
    try:
        with beside.open("wb") as target:
            yield target
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
