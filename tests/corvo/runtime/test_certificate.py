"""Which files make a certificate, and what is said of those that do not."""

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from corvo.runtime.certificate import BadCertificate, load_certificate
from tests.support.authority import Authority, Pair, write_whole


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Authority(tmp_path_factory.mktemp("authority")).sign()


def test_a_pair_makes_a_context_for_new_versions_only(pair: Pair) -> None:
    context = load_certificate(*pair)

    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.options & ssl.OP_NO_RENEGOTIATION and context.options & ssl.OP_NO_COMPRESSION
    old = [cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3"]
    assert old and all(
        name.startswith("ECDHE-") and name.endswith(("GCM-SHA256", "GCM-SHA384", "POLY1305")) for name in old
    )


def test_both_may_be_in_one_file(pair: Pair, tmp_path: Path) -> None:
    both = str(tmp_path / "both.pem")
    write_whole(both, Path(pair.cert).read_bytes() + Path(pair.key).read_bytes())

    assert load_certificate(both, both)


def test_the_group_may_read_the_key(pair: Pair, tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(Path(pair.key).read_bytes())
    key.chmod(0o440)

    assert load_certificate(pair.cert, str(key))


def test_who_is_not_there_or_no_pem_or_of_another_is_named(pair: Pair, tmp_path: Path) -> None:
    other = Authority(tmp_path).sign("other")
    for cert, key, words in [
        ("/nowhere.pem", pair.key, "the certificate /nowhere.pem cannot be read: no such file.*another --tls-cert"),
        (pair.cert, "/nowhere.pem", "the key /nowhere.pem cannot be read: no such file.*another --tls-key"),
        (pair.cert, str(tmp_path), "cannot be read: is a directory"),
        (pair.key, pair.key, "server.key holds no certificate in PEM; choose another --tls-cert"),
        (pair.cert, pair.cert, "server.pem holds no private key in PEM; choose another --tls-key"),
        (pair.cert, other.key, "other.key does not belong to the certificate .*server.pem; give two that were made"),
    ]:
        with pytest.raises(BadCertificate, match=words):
            load_certificate(cert, key)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "cannot be used: .*; make a new pair"),
        (b"-----BEGIN PRIVATE KEY-----\n", "cannot be used: .*; make a new pair"),
        (b"", "holds no private key in PEM"),
    ],
)
def test_a_damaged_key_is_refused(pair: Pair, tmp_path: Path, content: bytes, words: str) -> None:
    write_whole(str(tmp_path / "key.pem"), content)

    with pytest.raises(BadCertificate, match=words):
        load_certificate(pair.cert, str(tmp_path / "key.pem"))


def test_a_damaged_certificate_is_refused(pair: Pair, tmp_path: Path) -> None:
    write_whole(str(tmp_path / "cert.pem"), b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

    with pytest.raises(BadCertificate, match="cannot be used"):
        load_certificate(str(tmp_path / "cert.pem"), pair.key)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_a_key_behind_a_pass_phrase_is_refused_and_nobody_is_asked(
    pair: Pair, tmp_path: Path, form: PrivateFormat
) -> None:
    key = load_pem_private_key(Path(pair.key).read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, form, BestAvailableEncryption(b"secret"))
    write_whole(str(tmp_path / "key.pem"), locked)

    with pytest.raises(BadCertificate, match=r"is locked by a pass phrase.*unlock it with `openssl pkey -in"):
        load_certificate(pair.cert, str(tmp_path / "key.pem"))


@pytest.mark.parametrize("mode", [0o644, 0o602])
def test_a_key_that_is_open_to_everybody_is_refused(pair: Pair, tmp_path: Path, mode: int) -> None:
    key = tmp_path / "key.pem"
    key.write_bytes(Path(pair.key).read_bytes())
    key.chmod(mode)

    with pytest.raises(BadCertificate, match="is open to everybody; keep it to yourself with `chmod 600"):
        load_certificate(pair.cert, str(key))
