"""Settings: precedence, origins, and every fault at once."""

import pytest

from corvo.runtime.settings import (
    ENV_PREFIX,
    BadSettings,
    Settings,
    describe,
    load,
    names,
    retention_ms,
    worker_timeout_ms,
)


def faults_of(flags: dict | None = None, environ: dict | None = None, file_text: str = "") -> list[str]:
    with pytest.raises(BadSettings) as bad:
        load(flags or {}, environ or {}, file_text)
    return bad.value.faults


@pytest.mark.parametrize(
    ("flags", "environ", "file_text"),
    [({"log_level": "warn"}, {}, ""), ({}, {"CORVO_LOG_LEVEL": "warn"}, ""), ({}, {}, 'log_level = "warn"')],
)
def test_warn_is_a_second_name_of_warning(flags: dict[str, str], environ: dict[str, str], file_text: str) -> None:
    settings, _ = load(flags, environ, file_text)

    assert settings.log_level == "warning"


def test_without_sources_every_value_is_the_default() -> None:
    settings, origins = load({}, {})

    assert settings == Settings()
    assert set(origins) == set(names())
    assert set(origins.values()) == {"default"}


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default() -> None:
    file_text = 'shards = 1\nlog_level = "debug"\nfsync = "off"\n'
    environ = {"CORVO_SHARDS": "2", "CORVO_LOG_LEVEL": "error"}
    flags = {"shards": 3, "log_level": None}

    settings, origins = load(flags, environ, file_text)

    assert (settings.shards, settings.log_level, settings.fsync, settings.bind) == (3, "error", "off", "127.0.0.1:8080")
    assert [origins[name] for name in ("shards", "log_level", "fsync", "bind")] == [
        "flag",
        "environment",
        "file",
        "default",
    ]


def test_every_setting_has_a_description_and_can_come_from_the_environment() -> None:
    for name in names():
        default = getattr(Settings(), name)

        settings, origins = load({}, {ENV_PREFIX + name.upper(): str(default)})

        assert describe(name)
        assert (settings, origins[name]) == (Settings(), "environment")


@pytest.mark.parametrize(
    ("flags", "environ", "file_text", "fault"),
    [
        ({"shards": 0}, {}, "", "--shards is 0"),
        ({"shards": 65}, {}, "", "--shards is 65"),
        ({"shards": "many"}, {}, "", "--shards is 'many'"),
        ({}, {"CORVO_SHARDS": "0"}, "", "CORVO_SHARDS is '0'"),
        ({}, {"CORVO_SHARDS": ""}, "", "CORVO_SHARDS is ''"),
        ({}, {}, "shards = 0", "shards is 0"),
        ({}, {}, "shards =", "is not TOML"),
        ({}, {}, "shutdown_timeout = nan", "shutdown_timeout is nan"),
        ({"shutdown_timeout": "inf"}, {}, "", "--shutdown-timeout is 'inf'"),
        ({"hang_timeout": 1}, {}, "", "--hang-timeout is 1: expected 3 or more"),
        ({"hang_timeout": -1}, {}, "", "--hang-timeout is -1"),
        ({"node_id": "a b"}, {}, "", "--node-id is 'a b'"),
        ({"node_id": "a\n"}, {}, "", "--node-id is"),
        ({"data_dir": ""}, {}, "", "--data-dir is ''"),
        ({"fsync": "sometimes"}, {}, "", "--fsync is 'sometimes'"),
        ({"bind": "8080"}, {}, "", "--bind is '8080'"),
        ({"bind": ":99999"}, {}, "", "--bind is ':99999'"),
        ({"raft_bind": "host:"}, {}, "", "--raft-bind is 'host:'"),
        ({"max_payload_size": 2**40}, {}, "", "--max-payload-size is"),
        ({"tls_cert": "c.pem"}, {}, "", "--tls-cert is there without --tls-key: give both for TLS, or neither"),
        ({}, {"CORVO_TLS_KEY": "k.pem"}, "", "--tls-key is there without --tls-cert"),
        ({"tls_cert": "c.pem"}, {}, 'tls_key = ""', "--tls-cert is there without --tls-key"),
    ],
)
def test_a_bad_value_is_named_as_it_was_given(flags: dict, environ: dict, file_text: str, fault: str) -> None:
    assert any(fault in found for found in faults_of(flags, environ, file_text))


def test_all_bad_values_are_told_at_once() -> None:
    faults = faults_of({"shards": 0, "fsync": "x"}, {"CORVO_LOG_LEVEL": "loud"}, "bnid = 1\nmax_payload_size = -1")

    assert len(faults) == 5


def test_a_bad_address_is_told_beside_a_bad_number() -> None:
    assert len(faults_of({"shards": 0, "bind": "nowhere"})) == 2


def test_a_slip_in_the_file_is_answered_with_the_setting_that_was_meant() -> None:
    assert faults_of(file_text="shard = 2") == [
        "the settings file has an unknown setting 'shard'; did you mean shards?"
    ]


def test_a_stranger_in_the_file_is_answered_with_all_settings() -> None:
    [fault] = faults_of(file_text="[zzz]\nx = 1")

    assert all(name in fault for name in names())


SECRET = {"cluster_secret_file": "secret"}
LOCAL = {"raft_bind": "127.0.0.1:9400"}
THREE = {"peers": "node-1=127.0.0.1:9400,node-2=127.0.0.1:9410,node-3=127.0.0.1:9420"}


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        ({**LOCAL, "peers": "node-1"}, "--peers is 'node-1': 'node-1' is not name=host:port"),
        ({**LOCAL, "peers": "node-1=127.0.0.1"}, "'node-1=127.0.0.1': expected host:port"),
        ({**SECRET, "peers": "node-1=:9400"}, "':9400' is not an address that others can reach"),
        ({**LOCAL, "peers": " , "}, "--peers is ' , ': it names no node"),
        ({**SECRET, "join": "db-1"}, "--join is 'db-1': 'db-1': expected host:port"),
        ({**LOCAL, **THREE, "node_id": "node-9"}, "--node-id is 'node-9', which --peers does not name; it names"),
        ({"bootstrap": True, "join": "127.0.0.1:9400"}, "--bootstrap and --join are given together"),
        ({"raft_advertise": "0.0.0.0:9400"}, "--raft-advertise is '0.0.0.0:9400'"),
        ({"heartbeat_interval": 0.3}, "--heartbeat-interval is 0.3 and --election-timeout 0.5"),
        ({**SECRET, **THREE, "raft_bind": ":65532"}, "--raft-bind has ':65532': 4 shards need as many ports"),
        ({**SECRET, "join": "db-1:65534"}, "--join has 'db-1:65534'"),
        ({**SECRET, **THREE, "raft_bind": ":0"}, "--raft-bind is ':0': a node of a cluster needs a port"),
        (THREE, "nodes without a secret use loopback addresses only: give --raft-bind 127.0.0.1:9400"),
        ({**LOCAL, "join": "10.0.0.1:9400"}, "--join is not on loopback, and nodes without a secret use"),
        ({"join": "10.0.0.1:9400"}, "--raft-bind and --join are not on loopback"),
        ({**LOCAL, **THREE, "raft_advertise": "db-1:9400"}, "--raft-advertise is not on loopback"),
        ({"discover": "dns", "discover_dns_name": "corvo"}, "--discover finds nodes on other machines and so needs"),
    ],
)  # fmt: skip
def test_what_does_not_fit_together_is_one_sentence(flags: dict, fault: str) -> None:
    (found,) = faults_of(flags)

    assert fault in found


def test_a_secret_that_is_missing_comes_with_the_command_that_makes_one() -> None:
    (fault,) = faults_of({"join": "10.0.0.1:9400"})

    assert "`head -c 32 /dev/urandom | base64 > FILE` and give it with --cluster-secret-file" in fault


def test_two_ways_to_find_the_cluster_are_one_too_many() -> None:
    (fault,) = faults_of({**LOCAL, **THREE, "join": "127.0.0.1:9410"})

    assert fault.startswith("--peers and --join are given together")


def test_faults_of_a_cluster_are_told_beside_all_others() -> None:
    flags = {"shards": 0, "bind": "x", "peers": "a", "join": "b", "heartbeat_interval": 5, "discover": "dns"}

    assert len(faults_of(flags)) == 7


@pytest.mark.parametrize(
    "flags",
    [
        {**LOCAL, **THREE},
        {"raft_bind": "[::1]:9400", "join": "localhost:9400"},
        {"bootstrap": "true"},
        {**SECRET, "peers": "node-1=db-1:9400"},
        {**SECRET, "discover": "dns", "discover_dns_name": "corvo", "raft_advertise": "db-1:9400"},
        {"raft_bind": ":65535"},  # alone: nobody listens there
        {"heartbeat_interval": 0.25},
    ],
)
def test_what_fits_together_is_taken(flags: dict) -> None:
    load(flags, {})


def test_an_address_of_a_read_database_that_is_none_is_refused_without_its_password() -> None:
    (fault,) = faults_of({"read_db": "mysql://me:s3cret@host/db"})

    assert fault.startswith("--read-db is 'mysql://me:***@host/db': expected postgresql://user@host/database")


@pytest.mark.parametrize(("text", "span_ms"), [("168h", 604_800_000), ("30d", 2_592_000_000), ("forever", 0)])
def test_a_retention_is_a_span_or_forever(text: str, span_ms: int) -> None:
    assert retention_ms(load({"retention": text}, {})[0].retention) == span_ms


@pytest.mark.parametrize("text", ["", "soon", "10ms", "400d", "-1h"])
def test_a_retention_that_is_none_is_a_fault(text: str) -> None:
    (fault,) = faults_of({"retention": text})

    assert fault.startswith(f"--retention is {text!r}: expected") and "forever" in fault


def test_a_worker_timeout_is_a_span() -> None:
    assert worker_timeout_ms(load({}, {})[0].worker_timeout) == 15 * 60_000
    assert worker_timeout_ms(load({"worker_timeout": "1h"}, {})[0].worker_timeout) == 3_600_000


@pytest.mark.parametrize("text", ["soon", "9s", "400d"])
def test_a_worker_timeout_that_is_none_is_a_fault(text: str) -> None:
    (fault,) = faults_of({"worker_timeout": text})

    assert fault.startswith(f"--worker-timeout is {text!r}: expected")
