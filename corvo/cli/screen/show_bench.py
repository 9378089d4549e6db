"""The results of a benchmark: a table for people."""

import msgspec
from rich.table import Table

from corvo.cli.screen.show import columns, plain
from corvo.client.bench.report import BenchReport
from corvo.client.bench.tally import Percentiles


def as_json(report: BenchReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report)) + b"\n"


def table(report: BenchReport) -> Table:
    grid = columns("FIGURE", "VALUE")
    for name, value in _rows(report):
        grid.add_row(plain(name), plain(value))
    return grid


def _rows(report: BenchReport) -> list[tuple[str, str]]:
    plan, server, machine = report.plan, report.server, report.machine
    rows = [(f"{name} per second", f"{rate:,.0f}") for name, rate in report.rates_per_s.items()]
    if report.latency_ms is not None:
        rows.append(("latency, enqueue to worker", _shown(report.latency_ms)))
    if report.turn_ms is not None:
        rows.append(("round trip", _shown(report.turn_ms)))
    rows += [
        ("jobs", f"{report.enqueued:,} enqueued, {report.claimed:,} claimed, {report.completed:,} completed"),
        ("overloads", f"{report.overloads:,}"),
        ("errors", ", ".join(f"{count:,} {code}" for code, count in sorted(report.errors.items())) or "0"),
        ("measured", f"{report.seconds:g} s" + ("" if report.is_whole else ", stopped before its end")),
        (
            "load",
            f"{plan.mode}, {plan.protocol}, {plan.connections} connections, batches of {plan.batch},"
            f" {plan.queues} queues, {plan.payload_bytes} bytes" + (f", {plan.rate:g} jobs/s" if plan.rate else ""),
        ),
        (
            "server",
            f"{server.version} at {server.url}: {server.nodes} nodes, {server.shards} shards,"
            f" fsync {'on' if server.is_fsynced else 'off'}",
        ),
        (
            "this machine",
            f"{machine.cores} cores, {machine.cpu}, {machine.memory_gb:g} GB, {machine.system},"
            f" Python {machine.python}, load {machine.load:g} before",
        ),
    ]
    return rows + [("note", note) for note in report.notes]


def _shown(found: Percentiles) -> str:
    return f"p50 {found.p50:g} ms, p90 {found.p90:g} ms, p99 {found.p99:g} ms, max {found.max:g} ms"
