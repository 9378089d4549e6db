"""The export: whole, in pieces, of one namespace, and cut where it cannot go on."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from corvo.model.access import ANONYMOUS, Principal
from corvo.model.audit_chain import Anchor, BrokenChain, ChainCheck
from corvo.model.errors import Refusal
from corvo.ops.upkeep.keep_audit import KeepAudit
from corvo.queries.audit_logs import AuditExportQuery
from gateway.api import audit_export
from gateway.api.audit_export import EXPORTS_MAX, AuditExport
from gateway.http.messages import Disconnected, Request, Streaming
from tests.gateway.asgi import a_scope, parts
from tests.gateway.fake_shards import FakeShards
from tests.support.audit import append


@pytest.fixture
def shards() -> Iterator[FakeShards]:
    made = FakeShards(1)
    names = ("default", "acme")
    made.machines[0].apply(*(append(number, namespace=names[number % 2]) for number in range(1, 12)))
    yield made


def a_request(principal: Principal = ANONYMOUS) -> Request:
    request = Request(a_scope("GET", "/api/v1/audit-logs/export"), parts())
    request.principal = principal
    return request


def export(shards: FakeShards, principal: Principal = ANONYMOUS, **query: Any) -> list[bytes]:
    async def play() -> list[bytes]:
        pieces: list[bytes] = []

        async def write(piece: bytes) -> None:
            pieces.append(piece)

        answer = await AuditExport(shards).begin(AuditExportQuery(**query), a_request(principal))  # type: ignore[arg-type]
        assert isinstance(answer.body, Streaming)
        assert answer.body.content_type == b"application/x-ndjson"
        await answer.body.run(write)
        return b"".join(pieces).split(b"\n")[:-1]

    return asyncio.run(play())


def check(lines: list[bytes], expected: Anchor | None = None) -> ChainCheck:
    made = ChainCheck(expected)
    for line in lines:
        made.take(line)
    made.finish()
    return made


@pytest.fixture(params=[1, 3, 500])
def _page(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_export, "EXPORT_RECORDS", request.param)


@pytest.mark.usefixtures("_page")
def test_the_whole_log_in_pages(shards: FakeShards) -> None:
    made = check(export(shards))

    assert (made.records, made.last) == (11, shards.machines[0].tables.audit_log.last)


@pytest.mark.usefixtures("_page")
def test_it_continues_after_a_record(shards: FakeShards) -> None:
    log = shards.machines[0].tables.audit_log

    assert check(export(shards, after=4), Anchor(4, log.entry(4).hash)).records == 7
    assert check(export(shards, after=11), log.last).records == 0


@pytest.mark.usefixtures("_page")
def test_one_namespace_with_the_hashes_of_the_whole(shards: FakeShards) -> None:
    lines = export(shards, namespace="acme")
    made = check(lines)

    assert (made.records, made.is_partial) == (6, True)
    assert not any(b'"default"' in line for line in lines)


def test_a_tenant_gets_its_own_and_no_other(shards: FakeShards) -> None:
    tenant = msgspec.structs.replace(ANONYMOUS, namespace="acme", home="acme")

    assert export(shards, tenant) == export(shards, namespace="acme")
    with pytest.raises(Refusal, match="its own namespace only"):
        export(shards, tenant, namespace="default")


def test_an_empty_log() -> None:
    assert check(export(FakeShards(1))).records == 0


def test_records_that_come_meanwhile_wait_for_the_next_export(
    shards: FakeShards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "EXPORT_RECORDS", 4)
    lines = between_pages(shards, lambda: shards.machines[0].apply(append(100), append(101)))

    assert check(lines).last.seq == 11


def test_an_export_that_is_overtaken_by_retention_is_cut(shards: FakeShards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_export, "EXPORT_RECORDS", 2)

    def remove() -> None:
        shards.machines[0].apply(KeepAudit(0, 3), *(append(number) for number in range(200, 230)))

    with pytest.raises(BrokenChain, match="no end"):
        check(between_pages(shards, remove))


def test_an_export_whose_shard_is_lost_is_cut(shards: FakeShards, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_export, "EXPORT_RECORDS", 2)

    with pytest.raises(BrokenChain, match="no end"):
        check(between_pages(shards, lambda: shards.refusing.update({0: Refusal("NOT_LEADER", "no leader")})))


def between_pages(shards: FakeShards, do: Callable[[], object]) -> list[bytes]:
    """The lines of an export; `do` runs after its first page."""
    real, asked = shards.ask, []

    def ask(*arguments: Any, **options: Any) -> Any:
        asked.append(arguments)
        if len(asked) == 2:
            do()
        return real(*arguments, **options)

    shards.ask = ask  # type: ignore[method-assign]
    return export(shards)


@pytest.mark.parametrize("after", [12, 10**9])
def test_a_place_beyond_the_end_is_refused(shards: FakeShards, after: int) -> None:
    with pytest.raises(Refusal, match="the newest record of the audit log is 11"):
        export(shards, after=after)


def test_a_shard_that_cannot_be_asked_is_an_error_and_no_empty_export(shards: FakeShards) -> None:
    shards.refusing[0] = Refusal("NOT_LEADER", "no leader")

    with pytest.raises(Refusal, match="no leader"):
        export(shards)


def test_no_more_than_some_exports_run_at_a_time_and_a_client_that_does_not_read_is_left(
    shards: FakeShards, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_export, "WRITE_S", 0.01)

    async def play() -> None:
        made = AuditExport(shards)  # type: ignore[arg-type]
        stuck = asyncio.Event()

        async def never(piece: bytes) -> None:
            await stuck.wait()

        bodies = [(await made.begin(AuditExportQuery(), a_request())).body for _ in range(EXPORTS_MAX)]
        running = [asyncio.ensure_future(body.run(never)) for body in bodies]
        await asyncio.sleep(0)
        with pytest.raises(Refusal, match="exports run already"):
            await made.begin(AuditExportQuery(), a_request())
        ended = await asyncio.gather(*running, return_exceptions=True)
        assert all(isinstance(one, Disconnected) for one in ended)
        await made.begin(AuditExportQuery(), a_request())

    asyncio.run(play())
