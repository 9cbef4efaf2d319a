"""Security of Kafka clients as it is configured: what fits together, what is refused by which name, what is hidden."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from streams.kafka_security import PASSWORD_VARIABLE, KafkaSecurity
from streams.settings import GuardSettings, SettingsError

SECRET = "do not print me"
SASL: dict[str, Any] = {"sasl_mechanism": "SCRAM-SHA-512", "sasl_username": "guard"}
ENVIRONMENT = {PASSWORD_VARIABLE: SECRET}


@pytest.fixture(scope="module")
def pem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A certificate that signs itself, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("pem")
    made = {"certificate": folder / "certificate.pem", "key": folder / "key.pem", "locked": folder / "locked.pem"}
    new = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=guard", "-days", "1"]
    subprocess.run([*new, "-keyout", made["key"], "-out", made["certificate"]], check=True, capture_output=True)
    lock = ["openssl", "pkey", "-aes256", "-passout", "pass:x", "-in", made["key"], "-out", made["locked"]]
    subprocess.run(lock, check=True, capture_output=True)
    return made


def test_without_a_word_there_is_no_security_for_any_client() -> None:
    security = KafkaSecurity.of(environment=ENVIRONMENT)
    assert security == KafkaSecurity()
    assert security.aiokafka_options() == {"security_protocol": "PLAINTEXT"}
    assert security.librdkafka_options() == {"security.protocol": "PLAINTEXT"}
    assert security.faust_credentials() is None


def test_all_three_clients_are_given_the_same(pem: dict[str, Path]) -> None:
    options = {"ssl_cafile": pem["certificate"], "ssl_certfile": pem["certificate"], "ssl_keyfile": pem["key"], **SASL}
    security = KafkaSecurity.of(security_protocol="SASL_SSL", environment=ENVIRONMENT, **options)
    aiokafka = security.aiokafka_options()
    context = aiokafka.pop("ssl_context")
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert aiokafka == {
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "guard",
        "sasl_plain_password": SECRET,
    }
    assert security.librdkafka_options() == {
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(pem["certificate"]),
        "ssl.certificate.location": str(pem["certificate"]),
        "ssl.key.location": str(pem["key"]),
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "guard",
        "sasl.password": SECRET,
    }
    credentials = security.faust_credentials()
    assert (credentials.protocol.value, credentials.mechanism.value) == ("SASL_SSL", "SCRAM-SHA-512")
    assert (credentials.username, credentials.password) == ("guard", SECRET)
    assert credentials.ssl_context is not None


def test_a_certificate_alone_is_a_name_too(pem: dict[str, Path]) -> None:
    security = KafkaSecurity.of(
        security_protocol="SSL", ssl_certfile=pem["certificate"], ssl_keyfile=pem["key"], environment={}
    )
    assert set(security.aiokafka_options()) == {"security_protocol", "ssl_context"}
    assert security.faust_credentials().protocol.value == "SSL"


@pytest.mark.parametrize(
    ("options", "blamed"),
    [
        ({"security_protocol": "TLS"}, ["security_protocol"]),
        ({"ssl_cafile": Path(__file__)}, ["ssl_cafile"]),
        ({"sasl_username": "guard"}, ["sasl_username"]),
        ({"sasl_password_file": Path("password")}, ["sasl_password_file"]),
        ({"security_protocol": "SASL_SSL"}, ["sasl_mechanism", "sasl_username", "sasl_password"]),
        ({"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN", "sasl_username": ""}, ["sasl_username"]),
        ({"security_protocol": "SASL_SSL", **SASL, "sasl_mechanism": "GSSAPI"}, ["sasl_mechanism"]),
        ({"security_protocol": "SASL_SSL", **SASL}, ["sasl_password"]),
        ({"security_protocol": "SASL_SSL", **SASL, "sasl_password_file": Path("/none")}, ["sasl_password_file"]),
        ({"security_protocol": "SSL", "ssl_cafile": Path("/none")}, ["ssl_cafile"]),
        ({"security_protocol": "SSL", "ssl_cafile": Path(__file__)}, ["ssl_cafile"]),
        ({"security_protocol": "SSL", "ssl_keyfile": Path(__file__)}, ["ssl_certfile"]),
        ({"security_protocol": "SSL", "ssl_certfile": Path(__file__)}, ["ssl_keyfile"]),
        ({"security_protocol": "SSL", "sasl_mechanism": "PLAIN"}, ["sasl_mechanism"]),
        ({"passphrase": "x"}, ["passphrase"]),
    ],
)
def test_what_does_not_fit_is_refused_by_name(options: dict[str, Any], blamed: list[str]) -> None:
    with pytest.raises(SettingsError) as refused:
        KafkaSecurity.of(environment={}, **options)
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == blamed


def test_a_locked_key_is_refused_instead_of_asked_about(pem: dict[str, Path]) -> None:
    with pytest.raises(SettingsError, match="ssl_certfile, ssl_keyfile"):
        KafkaSecurity.of(
            security_protocol="SSL", ssl_certfile=pem["certificate"], ssl_keyfile=pem["locked"], environment={}
        )


def test_the_password_is_the_files_before_the_environments_and_is_never_printed(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("of the file\n")
    options = {"security_protocol": "SASL_PLAINTEXT", "environment": ENVIRONMENT, **SASL}
    from_file = KafkaSecurity.of(sasl_password_file=file, **options)
    assert from_file.aiokafka_options()["sasl_plain_password"] == "of the file"
    settings = GuardSettings.of(bootstrap_servers="k:9092", security=KafkaSecurity.of(**options))
    assert settings.security.aiokafka_options()["sasl_plain_password"] == SECRET
    for shown in (repr(settings), str(settings), settings.model_dump_json()):
        assert SECRET not in shown
    with pytest.raises(SettingsError) as refused:
        KafkaSecurity.of(**options | {"sasl_mechanism": "NONE"})
    assert SECRET not in str(refused.value)


def test_settings_name_the_option_at_fault() -> None:
    def blamed(**options: Any) -> list[str]:
        with pytest.raises(SettingsError) as refused:
            GuardSettings.of(bootstrap_servers="k:9092", **options)
        return [line.split(":")[0] for line in str(refused.value).splitlines()]

    assert blamed(hold_ms=600_001, session_timeout_ms=999) == ["session_timeout_ms", "hold_ms"]
    assert blamed(security={"security_protocol": "SASL_SSL"})[0] == "security"
    assert blamed(signing_key="key.pem", unsigned=True) == ["signing_key"]
    assert GuardSettings.embedded("k:9092").alone
    assert not GuardSettings.of(bootstrap_servers="k:9092").alone
