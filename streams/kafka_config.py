"""A file that says how to reach Kafka: `name=value` a line, in librdkafka's names, as `--kafka-config` takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from streams.kafka_security import KafkaSecurity
from streams.settings_errors import SettingsError

PLAINTEXT: Final = KafkaSecurity()
"""No security: for loopback."""

_NAMES: Final = {
    "security.protocol": "security_protocol",
    "ssl.ca.location": "ssl_cafile",
    "ssl.certificate.location": "ssl_certfile",
    "ssl.key.location": "ssl_keyfile",
    "sasl.mechanism": "sasl_mechanism",
    "sasl.username": "sasl_username",
    "sasl.password.location": "sasl_password_file",
}
_PATHS: Final = frozenset({"ssl_cafile", "ssl_certfile", "ssl_keyfile", "sasl_password_file"})


def kafka_security(path: Path | None) -> KafkaSecurity:
    """Security as a file says it; the default without one. Relative paths in it start at its folder.

    The password comes from the file that `sasl.password.location` names, or from WIRELESSOPS_SASL_PASSWORD. Raises
    SettingsError naming file, line and fault.
    """
    if path is None:
        return PLAINTEXT
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from error
    options: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, separator, value = (part.strip() for part in line.partition("="))
        if not separator or name not in _NAMES:
            known = ", ".join(_NAMES)
            raise SettingsError(f"{path}: line {number}: {name!r} is none of {known} (each as name=value)")
        option = _NAMES[name]
        options[option] = path.parent / value if option in _PATHS else value
    try:
        return KafkaSecurity.of(**options)
    except SettingsError as error:
        raise SettingsError("\n".join(f"{path}: {fault}" for fault in str(error).splitlines())) from error
