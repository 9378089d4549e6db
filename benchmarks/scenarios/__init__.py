"""The register of scenarios. To add one: write its file, add its SCENARIO here."""

from benchmarks.scenarios import (
    backlog,
    calm,
    cluster,
    drain,
    enqueue_http,
    failover,
    half_load,
    idle,
    latency,
    lists,
    overload,
    rivals,
    search,
    slope,
    stream,
    timers,
)

SCENARIOS = (
    enqueue_http.SCENARIO,
    drain.SCENARIO,
    stream.SCENARIO,
    latency.SCENARIO,
    backlog.SCENARIO,
    idle.SCENARIO,
    cluster.SCENARIO,
    failover.SCENARIO,
    timers.SCENARIO,
    half_load.SCENARIO,
    slope.SCENARIO,
    calm.SCENARIO,
    overload.SCENARIO,
    lists.SCENARIO,
    rivals.SCENARIO,
    search.SCENARIO,
)
