"""A file says how to reach Kafka; what is wrong in it is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from streams.kafka_config import PLAINTEXT, kafka_security
from streams.settings import SettingsError


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "kafka.properties"
    path.write_text("\n".join(lines))
    return path


def test_without_a_file_nothing_is_secured() -> None:
    assert kafka_security(None) is PLAINTEXT


def test_comments_and_blank_lines_are_passed_over_and_files_are_found_beside_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret\n")
    path = written(
        tmp_path, "# for the guard", "", "security.protocol = SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-512",
        "sasl.username=guard", "sasl.password.location=secret",
    )  # fmt: skip
    options = kafka_security(path).aiokafka_options()
    assert options["sasl_plain_username"] == "guard"
    assert options["sasl_plain_password"] == "s3cret"
    assert kafka_security(path).librdkafka_options()["sasl.mechanism"] == "SCRAM-SHA-512"


@pytest.mark.parametrize("line", ["nonsense", "sasl.password=in-the-open", "security.protocols=SSL"])
def test_a_line_that_says_nothing_known_is_named(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError, match="line 2"):
        kafka_security(written(tmp_path, "security.protocol=PLAINTEXT", line))


def test_what_does_not_fit_together_is_told_with_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "security.protocol=PLAINTEXT", "ssl.ca.location=ca.pem")
    with pytest.raises(SettingsError, match=r"kafka\.properties: ssl_cafile"):
        kafka_security(path)
    with pytest.raises(SettingsError, match="absent"):
        kafka_security(tmp_path / "absent")
