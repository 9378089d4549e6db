"""Settings: precedence, origins, and every fault at once."""

import pytest

from corvo.settings import ENV_PREFIX, BadSettings, Settings, describe, load, names, split_address


def faults_of(flags: dict | None = None, environ: dict | None = None, file_text: str = "") -> list[str]:
    with pytest.raises(BadSettings) as bad:
        load(flags or {}, environ or {}, file_text)
    return bad.value.faults


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

    assert (settings.shards, settings.log_level, settings.fsync, settings.bind) == (3, "error", "off", ":8080")
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
        ({"node_id": "a b"}, {}, "", "--node-id is 'a b'"),
        ({"node_id": "a\n"}, {}, "", "--node-id is"),
        ({"data_dir": ""}, {}, "", "--data-dir is ''"),
        ({"fsync": "sometimes"}, {}, "", "--fsync is 'sometimes'"),
        ({"bind": "8080"}, {}, "", "--bind is '8080'"),
        ({"bind": ":99999"}, {}, "", "--bind is ':99999'"),
        ({"raft_bind": "host:"}, {}, "", "--raft-bind is 'host:'"),
        ({"max_payload_size": 2**40}, {}, "", "--max-payload-size is"),
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


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (":8080", ("0.0.0.0", 8080)),
        ("localhost:0", ("localhost", 0)),
        ("127.0.0.1:65535", ("127.0.0.1", 65535)),
        ("[::1]:80", ("::1", 80)),
    ],
)
def test_an_address_is_a_host_and_a_port(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize(
    "address", ["", "8080", "host", "host:", ":-1", ":65536", ":http", ":٨٠", ":8 0", ":" + "9" * 5000]
)
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"\w+ \w+"):
        split_address(address)
