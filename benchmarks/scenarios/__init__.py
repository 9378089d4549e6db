"""The register of scenarios. To add one: write its file, add its SCENARIO here."""

from benchmarks.scenarios import backlog, drain, enqueue_http, idle, latency, stream

SCENARIOS = (
    enqueue_http.SCENARIO,
    drain.SCENARIO,
    stream.SCENARIO,
    latency.SCENARIO,
    backlog.SCENARIO,
    idle.SCENARIO,
)
