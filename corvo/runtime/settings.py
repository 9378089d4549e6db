"""Settings: one struct, one loader, one explainer.

Precedence: flag, environment (`CORVO_…`), TOML file, default. `load` is pure: it takes the three sources and returns
the settings with the origin of each value, or raises all faults at once.
"""

import difflib
import tomllib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec
from msgspec import Meta

from corvo.model.limits import (
    AUDIT_RECORDS_DEFAULT,
    AUDIT_RECORDS_MIN,
    AUDIT_RETENTION_MS_MAX,
    AUDIT_RETENTION_MS_MIN,
    BODY_BYTES_MAX,
    DELAY_MS_MAX,
    GATEWAYS_MAX,
    NODES_MAX,
    PAYLOAD_BYTES_DEFAULT,
    QUEUES_MEASURED_MAX,
    RETENTION_MS_MIN,
    SHARDS_MAX,
    WORKER_TIMEOUT_MS_MIN,
)
from corvo.model.timestamps import parse_duration
from corvo.runtime.addresses import check_public_url, is_loopback, parse_networks, split_address
from corvo.runtime.clustering import faults_of, is_clustered
from corvo.runtime.origins import parse_origins
from corvo.runtime.read_db import parse_read_db, without_password

ENV_PREFIX = "CORVO_"
HANG_TIMEOUT_MIN = 3.0  # a process that is well beats once a second
_ALIASES = {("log_level", "warn"): "warning"}  # a setting and a second name of one of its values


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every field is a flag (`--data-dir`), a variable (`CORVO_DATA_DIR`) and a key of the file (`data_dir`)."""

    data_dir: Annotated[str, Meta(min_length=1, description="directory of all data of this node")] = "data"
    bind: Annotated[str, Meta(description="address and port for HTTP; :8080 means every address")] = "127.0.0.1:8080"
    auth: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="on: every request needs a credential; auto: on, except on loopback without any credential"),
    ] = "auto"
    admin_password_file: Annotated[
        str, Meta(description="file with a password that is accepted as the key of an admin; its owner's alone")
    ] = ""
    payload_key_file: Annotated[
        str, Meta(description="file with keys, ID:KEY a line, that encrypt payloads on disk; the first one encrypts")
    ] = ""
    public_url: Annotated[
        str, Meta(description="address at which browsers reach this server, for sign-on: https://corvo.example.com")
    ] = ""
    oidc_client_secret_file: Annotated[
        str, Meta(description="file with the client's secret at the sign-on issuer, where it needs one; its owner's")
    ] = ""
    oidc_audiences: Annotated[
        str, Meta(description="further audiences of access tokens that count here, comma-separated, beside the client")
    ] = ""
    trusted_proxies: Annotated[
        str, Meta(description="addresses or networks of proxies that may vouch for people by headers, comma-separated")
    ] = ""
    tls_cert: Annotated[
        str, Meta(description="file with the certificate and its chain (PEM); turns HTTP off and HTTPS on")
    ] = ""
    tls_key: Annotated[str, Meta(description="file with the private key of the certificate (PEM)")] = ""
    shards: Annotated[
        int, Meta(ge=1, le=SHARDS_MAX, description="number of shards, fixed when the data directory is created")
    ] = 4
    raft_bind: Annotated[
        str, Meta(description="address and first port for other nodes; shard i listens on that port plus i")
    ] = ":9400"
    raft_advertise: Annotated[
        str, Meta(description="address and first port at which other nodes reach this one; derived when empty")
    ] = ""
    bootstrap: Annotated[
        bool, Meta(description="start a cluster of one node, which others can join; creates the secret if needed")
    ] = False
    peers: Annotated[
        str, Meta(description="founding nodes of a cluster, this one included: name=host:port,name=host:port")
    ] = ""
    join: Annotated[str, Meta(description="nodes of a running cluster to join: host:port,host:port")] = ""
    discover: Annotated[Literal["", "dns"], Meta(description="dns: find the other nodes by a DNS name")] = ""
    discover_dns_name: Annotated[
        str, Meta(description="DNS name that resolves to the addresses of all nodes; empty: the domain of this machine")
    ] = ""
    expect_nodes: Annotated[
        int, Meta(ge=1, le=NODES_MAX, description="number of founding nodes when nodes find each other by DNS")
    ] = 3
    cluster_secret_file: Annotated[
        str, Meta(description="file with the secret that all nodes share; without it, nodes must be on loopback")
    ] = ""
    test_clock: Annotated[
        bool,
        Meta(
            description="for tests: the clock of this node can be moved forward; on loopback, a single node, new data"
        ),
    ] = False
    heartbeat_interval: Annotated[
        float, Meta(ge=0.01, le=10, description="seconds between the heartbeats of a shard's leader")
    ] = 0.1
    election_timeout: Annotated[
        float,
        Meta(
            ge=0.05, le=60, description="seconds without a leader before an election; each node waits up to twice that"
        ),
    ] = 0.5
    node_id: Annotated[
        str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}\Z", description="name of this node in the cluster")
    ] = "node-1"
    gateways: Annotated[
        int, Meta(ge=1, le=GATEWAYS_MAX, description="number of HTTP processes; they share the port")
    ] = 1
    http_server: Annotated[
        Literal["hypercorn", "granian"],
        Meta(description="HTTP server library; granian needs the extra `fast`"),
    ] = "hypercorn"
    read_db: Annotated[
        str, Meta(description="PostgreSQL for lists and search: postgresql://user@host/database; empty: a file")
    ] = ""
    fsync: Annotated[Literal["on", "off"], Meta(description="off: a power cut may lose acknowledged jobs")] = "on"
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], Meta(description="lowest level that is logged")
    ] = "info"
    log_format: Annotated[
        Literal["auto", "console", "json"], Meta(description="auto: console on a terminal, otherwise json")
    ] = "auto"
    retention: Annotated[
        str, Meta(description="how long ended jobs are kept unless their queue says otherwise: 168h, 30d or forever")
    ] = "168h"
    worker_timeout: Annotated[
        str, Meta(description="how long a worker may be silent before it is removed: 15m, 1h")
    ] = "15m"
    audit_retention: Annotated[
        str, Meta(description="how long records of the audit log are kept: 365d, 8760h or forever")
    ] = "365d"
    audit_records: Annotated[
        int, Meta(ge=AUDIT_RECORDS_MIN, le=10**9, description="records of the audit log that are kept at most")
    ] = AUDIT_RECORDS_DEFAULT
    audit_payload_reads: Annotated[
        Literal["on", "off"], Meta(description="on: also record which people and keys read payloads of jobs")
    ] = "off"
    max_payload_size: Annotated[int, Meta(ge=1, le=BODY_BYTES_MAX, description="bytes of one job's payload")] = (
        PAYLOAD_BYTES_DEFAULT
    )
    hang_timeout: Annotated[
        float,
        Meta(ge=0, le=3600, description="seconds without a heartbeat after which a process is killed; 0: never"),
    ] = 30.0
    metrics_queues: Annotated[
        int,
        Meta(ge=0, le=QUEUES_MEASURED_MAX, description="number of queues with their own figures in /metrics; 0: none"),
    ] = 0
    cors_origins: Annotated[
        str, Meta(description="web origins that may call the API, comma-separated, or *; empty: none")
    ] = ""
    rate_limit: Annotated[
        Literal["auto", "on", "off"],
        Meta(description="refuse requests beyond the rates below; auto: of clients with a credential only"),
    ] = "auto"
    rate_limit_read_rps: Annotated[float, Meta(gt=0, le=1e9, description="reads per second of one client")] = 2000.0
    rate_limit_read_burst: Annotated[float, Meta(ge=1, le=1e9, description="reads at once of one client")] = 4000.0
    rate_limit_write_rps: Annotated[float, Meta(gt=0, le=1e9, description="writes per second of one client")] = 1000.0
    rate_limit_write_burst: Annotated[float, Meta(ge=1, le=1e9, description="writes at once of one client")] = 2000.0
    shutdown_timeout: Annotated[
        float, Meta(ge=0, le=600, description="seconds that requests in flight may take at shutdown")
    ] = 20.0


Origins = dict[str, str]  # setting → "flag", "environment", "file" or "default"


class BadSettings(Exception):
    """All faults, a sentence each."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


def load(
    flags: Mapping[str, Any], environ: Mapping[str, str], file_text: str = "", file_name: str = "the settings file"
) -> tuple[Settings, Origins]:
    """`flags` hold None for flags that were not given."""
    faults: list[str] = []
    values: dict[str, Any] = {}
    origins: Origins = dict.fromkeys(names(), "default")
    for name, value in _from_file(file_text, file_name, faults).items():
        values[name], origins[name] = value, "file"
    for name in names():
        variable = ENV_PREFIX + name.upper()
        if variable in environ:
            values[name], origins[name] = environ[variable], "environment"
        if flags.get(name) is not None:
            values[name], origins[name] = flags[name], "flag"
    checked = {}
    for name, value in values.items():
        try:
            checked[name] = msgspec.convert(_ALIASES.get((name, str(value)), value), _types()[name], strict=False)
        except msgspec.ValidationError as error:
            faults.append(f"{_label(name, origins[name])} is {value!r}: {_expected(name, error)}")
    settings = Settings(**checked)  # faulty values have their default, so that the rest can be checked too
    faults += _check_relations(settings)
    if faults:
        raise BadSettings(faults)
    return settings, origins


def names() -> tuple[str, ...]:
    return Settings.__struct_fields__


def describe(name: str) -> str:
    meta = _types()[name].__metadata__[0]
    return str(meta.description)


def _check_relations(settings: Settings) -> list[str]:
    faults = []
    for name, parse, shown in _PARSED:
        value = getattr(settings, name)
        try:
            parse(value)
        except ValueError as error:
            faults.append(f"--{name.replace('_', '-')} is {shown(value)}: {error}")
    if half := half_of_tls(settings.tls_cert, settings.tls_key):
        faults.append(half)
    if settings.test_clock and not faults and (is_clustered(settings) or not is_loopback(settings.bind)):
        faults.append("--test-clock is for tests, on a single node on loopback: its jobs get times of the future")
    return faults + faults_of(settings)


def _check_hang_timeout(seconds: float) -> None:
    if 0 < seconds < HANG_TIMEOUT_MIN:
        raise ValueError(
            f"expected {HANG_TIMEOUT_MIN:g} or more, because heartbeats come once a second; 0 switches it off"
        )


def retention_ms(text: str) -> int:
    """0: for ever."""
    return _kept_ms(text, RETENTION_MS_MIN, DELAY_MS_MAX, "expected between 1s and 366d, or forever")


def audit_retention_ms(text: str) -> int:
    """0: for ever."""
    bounds = (AUDIT_RETENTION_MS_MIN, AUDIT_RETENTION_MS_MAX)
    return _kept_ms(text, *bounds, "expected between 1h and 3660d, or forever")


def _kept_ms(text: str, least: int, most: int, expected: str) -> int:
    if text == "forever":
        return 0
    try:
        span = parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{error}, or forever") from None
    if not least <= span <= most:
        raise ValueError(expected)
    return span


def worker_timeout_ms(text: str) -> int:
    span = parse_duration(text)
    if not WORKER_TIMEOUT_MS_MIN <= span <= DELAY_MS_MAX:
        raise ValueError("expected between 10s and 366d")
    return span


# What a type cannot check: setting, parser, how a faulty value is shown.
_PARSED: tuple[tuple[str, Callable[[Any], object], Callable[[Any], str]], ...] = (
    ("bind", split_address, repr),
    ("read_db", parse_read_db, lambda text: repr(without_password(text))),
    ("public_url", check_public_url, repr),
    ("trusted_proxies", parse_networks, repr),
    ("hang_timeout", _check_hang_timeout, "{:g}".format),
    ("cors_origins", parse_origins, repr),
    ("retention", retention_ms, repr),
    ("worker_timeout", worker_timeout_ms, repr),
    ("audit_retention", audit_retention_ms, repr),
)


def half_of_tls(tls_cert: str, tls_key: str) -> str:
    """A sentence when only one of the two files is given; otherwise empty."""
    if bool(tls_cert) == bool(tls_key):
        return ""
    given, missing = ("--tls-cert", "--tls-key") if tls_cert else ("--tls-key", "--tls-cert")
    return f"{given} is there without {missing}: give both for TLS, or neither"


def _from_file(text: str, file_name: str, faults: list[str]) -> dict[str, Any]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        faults.append(f"{file_name} is not TOML: {error}")
        return {}
    for name in [name for name in table if name not in names()]:
        close = difflib.get_close_matches(name, names(), 1)
        hint = f"; did you mean {close[0]}?" if close else f"; the settings are {', '.join(names())}"
        faults.append(f"{file_name} has an unknown setting {name!r}{hint}")
        del table[name]
    return table


def _expected(name: str, error: msgspec.ValidationError) -> str:
    choices = get_args(get_args(_types()[name])[0])
    if choices:
        return f"expected {' or '.join(map(str, choices))}"
    return str(error)[0].lower() + str(error)[1:]


def _label(name: str, origin: str) -> str:
    return {"flag": "--" + name.replace("_", "-"), "environment": ENV_PREFIX + name.upper()}.get(origin, name)


def _types() -> dict[str, Any]:
    return get_type_hints(Settings, include_extras=True)
