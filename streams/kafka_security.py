"""How to show Kafka who we are, and to know the broker: one description, for each of the three clients we use."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator

from streams.settings_errors import SettingsError

PASSWORD_VARIABLE: Final = "WIRELESSOPS_SASL_PASSWORD"  # noqa: S105 - the name of the variable

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]


class KafkaSecurity(BaseModel):
    """Security of every connection to Kafka; the default is none. Build it by `of()`.

    `ssl_cafile`: PEM of whom to trust (none: the system's authorities); `ssl_certfile` with `ssl_keyfile`: PEM of our
    own certificate and its unencrypted key, where the broker asks for one. The host names of brokers are checked.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    security_protocol: Protocol = "PLAINTEXT"
    ssl_cafile: Path | None = None
    ssl_certfile: Path | None = None
    ssl_keyfile: Path | None = None
    sasl_mechanism: Mechanism | None = None
    sasl_username: Annotated[str, Field(min_length=1)] | None = None
    sasl_password: SecretStr | None = None

    @classmethod
    def of(
        cls, *, sasl_password_file: Path | None = None, environment: Mapping[str, str] = os.environ, **options: Any
    ) -> Self:
        """Security from options; the password is the file's content, or else WIRELESSOPS_SASL_PASSWORD.

        A password is never taken from the command line, which every user of a machine can read. Raises SettingsError
        naming each option at fault.
        """
        try:
            if str(options.get("security_protocol", "")).startswith("SASL_"):
                options["sasl_password"] = _password(sasl_password_file, environment)
            elif sasl_password_file is not None:
                raise SettingsError("sasl_password_file: only with a security_protocol of SASL")
            return cls(**options)
        except ValidationError as error:
            raise SettingsError.of(error) from None

    @property
    def encrypted(self) -> bool:
        """Whether connections are TLS."""
        return self.security_protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        """Whether we name ourselves by user and password."""
        return self.security_protocol.startswith("SASL_")

    def aiokafka_options(self) -> dict[str, Any]:
        """Keyword arguments of any aiokafka client."""
        options: dict[str, Any] = {"security_protocol": self.security_protocol}
        if self.encrypted:
            options["ssl_context"] = self._context()
        if self.sasl:
            options["sasl_mechanism"] = self.sasl_mechanism
            options["sasl_plain_username"] = self.sasl_username
            options["sasl_plain_password"] = self._secret()
        return options

    def librdkafka_options(self) -> dict[str, Any]:
        """Configuration of any confluent-kafka client."""
        options: dict[str, Any] = {"security.protocol": self.security_protocol}
        if self.encrypted:
            files = {
                "ssl.ca.location": self.ssl_cafile,
                "ssl.certificate.location": self.ssl_certfile,
                "ssl.key.location": self.ssl_keyfile,
            }
            options |= {name: str(path) for name, path in files.items() if path is not None}
        if self.sasl:
            options["sasl.mechanism"] = self.sasl_mechanism
            options["sasl.username"] = self.sasl_username
            options["sasl.password"] = self._secret()
        return options

    def faust_credentials(self) -> Any:
        """`broker_credentials` of a Faust app; None where there are none."""
        import faust

        context = self._context() if self.encrypted else None
        if self.sasl:
            return faust.SASLCredentials(
                username=self.sasl_username,
                password=self._secret(),
                mechanism=self.sasl_mechanism,
                ssl_context=context,
            )
        return None if context is None else faust.SSLCredentials(context)

    def _secret(self) -> str:
        assert self.sasl_password is not None
        return self.sasl_password.get_secret_value()

    def _context(self) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=self.ssl_cafile)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.ssl_certfile is not None:
            # An encrypted key errs, instead of asking for its password on the terminal
            context.load_cert_chain(self.ssl_certfile, self.ssl_keyfile, password=lambda: "")
        return context

    @model_validator(mode="after")
    def _fits(self) -> Self:
        faults = [*self._stray(), *self._lacking(), *self._unreadable()]
        if not faults and self.encrypted:
            try:
                self._context()
            except (ssl.SSLError, OSError) as error:
                faults = [f"{self._blamed()}: no usable PEM: {error}"]
        if faults:
            raise ValueError("\n".join(faults))
        return self

    def _stray(self) -> Iterator[str]:
        """Options that would be ignored: somebody believes himself safer than he is."""
        if not self.encrypted:
            for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
                if getattr(self, name) is not None:
                    yield f"{name}: only with a security_protocol of SSL, which is {self.security_protocol}"
        if not self.sasl:
            for name in ("sasl_mechanism", "sasl_username", "sasl_password"):
                if getattr(self, name) is not None:
                    yield f"{name}: only with a security_protocol of SASL, which is {self.security_protocol}"

    def _lacking(self) -> Iterator[str]:
        if (self.ssl_certfile is None) != (self.ssl_keyfile is None):
            lacking, given = ("ssl_certfile", "ssl_keyfile")[:: 1 if self.ssl_certfile is None else -1]
            yield f"{lacking}: needed with {given}"
        if self.sasl:
            for name in ("sasl_mechanism", "sasl_username"):
                if getattr(self, name) is None:
                    yield f"{name}: needed with {self.security_protocol}"
            if self.sasl_password is None or not self._secret():
                yield f"sasl_password: needed with {self.security_protocol}: {PASSWORD_VARIABLE}, or a file of it"

    def _unreadable(self) -> Iterator[str]:
        for name in ("ssl_cafile", "ssl_certfile", "ssl_keyfile"):
            path: Path | None = getattr(self, name)
            if path is not None and not os.access(path, os.R_OK):
                yield f"{name}: {path} cannot be read"

    def _blamed(self) -> str:
        """The option whose file is not what it should be."""
        try:
            ssl.create_default_context(cafile=self.ssl_cafile)
        except (ssl.SSLError, OSError):
            return "ssl_cafile"
        return "ssl_certfile, ssl_keyfile"


def _password(file: Path | None, environment: Mapping[str, str]) -> SecretStr | None:
    if file is None:
        given = environment.get(PASSWORD_VARIABLE)
        return None if given is None else SecretStr(given)
    try:
        return SecretStr(file.read_text(encoding="utf-8").rstrip("\r\n"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"sasl_password_file: {file} cannot be read: {error}") from error
