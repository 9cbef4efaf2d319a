"""Keys on disk and in the environment: the guard's signing key, and the public keys that a verifier knows."""

from __future__ import annotations

import binascii
import os
import re
import stat
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from xapp.signing import KnownKeys, Signer

ENVIRONMENT: Final = "WIRELESSOPS_SIGNING_KEY"
"""Holds the signing key itself: PEM (PKCS #8), or base64 of its 32 bytes."""

_MAX_BYTES: Final = 1_000_000
_SEED_BYTES: Final = 32
_OTHERS: Final = stat.S_IRWXO
_GROUP: Final = stat.S_IRWXG
_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)


class KeyFault(ValueError):
    """A key that cannot be used; the message says where it is and why, and never what is in it."""


def signing_key(path: Path | None, environ: Mapping[str, str]) -> Signer | None:
    """The key of `path` if one is given, else that of the environment, else None. Raises KeyFault."""
    if path is not None:
        return read_signing_key(path)
    text = environ.get(ENVIRONMENT)
    return None if not text else _signer_of_text(text)


def read_signing_key(path: Path) -> Signer:
    """The private key in a PEM file that nobody else may read (`who_else`). Raises KeyFault."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise KeyFault(f"{path}: no regular file")
            else_read = who_else(status, os.geteuid(), {os.getegid(), *os.getgroups()})
            if else_read is not None:
                raise KeyFault(f"{path}: {else_read} (mode {stat.S_IMODE(status.st_mode):04o})")
            data = file.read(_MAX_BYTES)
    except OSError as error:
        raise KeyFault(f"{path}: {error.strerror or error}") from error
    return Signer(_private(data, str(path)))


def who_else(status: os.stat_result, uid: int, groups: Set[int]) -> str | None:
    """Who may use a key file beside the user `uid` of these groups, and what to do about it; None where nobody may.

    A file of ours has no bits for its group. One of another owner may be read by a group of ours: so a platform gives a
    secret to a user without rights (a Kubernetes volume with `fsGroup`: owner root, mode 0440), who could not read it
    in any other way.
    """
    if status.st_mode & _OTHERS:
        return "others may use it; chmod 600 it (a Kubernetes volume: defaultMode 0400, and fsGroup of the pod)"
    if not status.st_mode & _GROUP:
        return None
    if uid in (0, status.st_uid) or status.st_gid not in groups:
        return "its group may use it; chmod 600 it"
    return "its group may change it; chmod 440 it" if status.st_mode & stat.S_IWGRP else None


def ephemeral_key() -> Signer:
    """A new key that ends with this process: for one run whose verifiers are told its public half by hand."""
    return Signer(Ed25519PrivateKey.generate())


def known_keys(paths: Sequence[Path]) -> KnownKeys:
    """The public keys in PEM files (one or more each), and in the `*.pem` files of folders.

    Raises KeyFault for a file without a key, for a folder without a file, and for a private key: it has no business
    where verifiers read.
    """
    keys = []
    for path in paths:
        for file in _files(path):
            keys += public_keys(file)
    return KnownKeys(keys)


def public_keys(path: Path) -> list[Ed25519PublicKey]:
    """All public keys of one PEM file, at least one. Raises KeyFault."""
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_BYTES)
    except OSError as error:
        raise KeyFault(f"{path}: {error.strerror or error}") from error
    found = []
    for block in _BLOCK.finditer(data):
        if b"PRIVATE" in block[1]:
            raise KeyFault(f"{path}: a private key; verifiers need its public half alone")
        try:
            key = serialization.load_pem_public_key(block[0])
        except (ValueError, UnsupportedAlgorithm) as error:
            raise KeyFault(f"{path}: no public key: {error}") from error
        if not isinstance(key, Ed25519PublicKey):
            raise KeyFault(f"{path}: a key of another type than Ed25519")
        found.append(key)
    if not found:
        raise KeyFault(f"{path}: no public key in PEM")
    return found


def write_new(path: Path) -> tuple[Signer, Path]:
    """Make a key: the private one at `path` (0600), its public half beside it; gives both. Overwrites nothing.

    Raises KeyFault where either exists or cannot be written; nothing is left then.
    """
    public_path = path.with_name(path.name.removesuffix(".pem") + ".pub.pem")
    signer = ephemeral_key()
    private = signer.key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    written: list[Path] = []
    try:
        for where, data, mode in ((path, private, 0o600), (public_path, public_pem(signer.public_key), 0o644)):
            handle = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            written.append(where)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
    except OSError as error:
        for where in written:
            where.unlink(missing_ok=True)
        raise KeyFault(f"{error.filename or path}: {error.strerror or error}") from error
    return signer, public_path


def public_pem(key: Ed25519PublicKey) -> bytes:
    """A public key as PEM."""
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def holds_private_key(path: Path) -> bool:
    """Whether a file has a private key in PEM in it. Raises KeyFault where it cannot be read."""
    try:
        with path.open("rb") as file:
            return any(b"PRIVATE" in block[1] for block in _BLOCK.finditer(file.read(_MAX_BYTES)))
    except OSError as error:
        raise KeyFault(f"{path}: {error.strerror or error}") from error


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(path.glob("*.pem"))
    if not files:
        raise KeyFault(f"{path}: no *.pem in this folder")
    return files


def _signer_of_text(text: str) -> Signer:
    if "-----BEGIN" in text:
        return Signer(_private(text.encode(), ENVIRONMENT))
    try:
        seed = binascii.a2b_base64("".join(text.split()), strict_mode=True)
    except (binascii.Error, ValueError):
        seed = b""
    if len(seed) != _SEED_BYTES:
        raise KeyFault(f"{ENVIRONMENT}: neither a PEM nor base64 of {_SEED_BYTES} bytes")
    return Signer.of_seed(seed)


def _private(pem: bytes, place: str) -> Ed25519PrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except TypeError as error:
        raise KeyFault(f"{place}: it has a passphrase, which a guard cannot be asked for") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise KeyFault(f"{place}: no private key in PEM (PKCS #8)") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise KeyFault(f"{place}: a key of another type than Ed25519")
    return key
