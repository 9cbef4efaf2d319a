"""Signatures: Ed25519 over DSSE v1 (Dead Simple Signing Envelope), for whole payloads and for JSON documents.

A payload travels in an envelope, as the bytes that were signed. A decision on `control` is a document that readers
take as it is: its signature is one more member, made over the canonical form of all the others, so that neither the
order of keys nor the spelling of a string matters. Ed25519 is deterministic: same key and bytes, same signature.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

DOCUMENT_TYPE: Final = "application/vnd.wirelessops.control+json"
"""What a document is to its signature: none of the types that envelopes carry, so that neither passes as the other."""

SIGNATURE_BYTES: Final = 64
SIGNATURE: Final = "signature"
"""The member of a signed document that holds its signature."""

_AT_THE_END: Final = re.compile(rb',"signature":\{"keyid":"[^"]*","sig":"[^"]*"\}\}\Z')

Fault = Literal["unsigned", "unknown_signer", "bad_signature", "malformed"]
"""Why a signature proves nothing: there is none; nobody known made it; it is of other content; it cannot be read."""


class EnvelopeError(ValueError):
    """What should be a DSSE envelope is none; the message says why."""


def pae(payload_type: str, payload: bytes) -> bytes:
    """DSSE's pre-authentication encoding: the bytes that are signed."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def keyid_of(key: Ed25519PublicKey) -> str:
    """The name of a public key: `ed25519:` and half of the SHA-256 of its 32 bytes, in hex."""
    return "ed25519:" + hashlib.sha256(key.public_bytes_raw()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Signer:
    """A private key that signs."""

    key: Ed25519PrivateKey = field(repr=False)
    keyid: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "keyid", keyid_of(self.key.public_key()))

    @classmethod
    def of_seed(cls, seed: bytes) -> Self:
        """The signer of the 32 bytes of a private key. Raises ValueError for another number of bytes."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @property
    def public_key(self) -> Ed25519PublicKey:
        return self.key.public_key()

    def sign(self, message: bytes) -> bytes:
        """The 64 bytes of the signature of a message."""
        return self.key.sign(message)


class KnownKeys(Mapping[str, Ed25519PublicKey]):
    """The public keys whose signatures count, by keyid."""

    __slots__ = ("_keys",)

    def __init__(self, keys: Iterable[Ed25519PublicKey] = ()) -> None:
        self._keys = {keyid_of(key): key for key in keys}

    def __getitem__(self, keyid: str) -> Ed25519PublicKey:
        return self._keys[keyid]

    def __iter__(self) -> Any:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def fault(self, keyid: str, signature: bytes, message: bytes) -> Fault | None:
        """What is wrong with a signature of `message`, said to be made with the key `keyid`; None: it is good."""
        key = self._keys.get(keyid)
        if key is None:
            return "unknown_signer"
        try:
            key.verify(signature, message)
        except InvalidSignature:
            return "bad_signature"
        return None


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of an envelope. `keyid` names the key it is to be held against; it proves nothing."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A DSSE envelope, decoded and not yet believed."""

    payload: bytes
    payload_type: str
    signatures: tuple[Signature, ...]

    def verify(self, known: KnownKeys) -> Fault | None:
        """None where a known key signed this payload; else why that is not so."""
        if not self.signatures:
            return "unsigned"
        message = pae(self.payload_type, self.payload)
        faults = {known.fault(one.keyid, one.sig, message) for one in self.signatures}
        if None in faults:
            return None
        return "bad_signature" if "bad_signature" in faults else "unknown_signer"


def seal(payload: bytes, payload_type: str, signer: Signer | None) -> bytes:
    """The envelope of a payload, as JSON. Without a signer it says so: it has no signatures."""
    signatures = ""
    if signer is not None:
        signatures = _signature_json(signer, pae(payload_type, payload))
    return b'{"payloadType":%b,"payload":"%b","signatures":[%b]}' % (
        orjson.dumps(payload_type),
        base64.b64encode(payload),
        signatures.encode(),
    )


def open_envelope(value: bytes) -> Envelope:
    """The envelope in these bytes. Raises EnvelopeError."""
    try:
        document = orjson.loads(value)
    except orjson.JSONDecodeError as error:
        raise EnvelopeError(f"not JSON: {error}") from error
    return read_envelope(document)


def is_envelope(document: Any) -> bool:
    """Whether a JSON document means to be an envelope."""
    return isinstance(document, Mapping) and "payloadType" in document


def read_envelope(document: Any) -> Envelope:
    """The envelope in a JSON document; members that DSSE does not name are ignored. Raises EnvelopeError."""
    if not isinstance(document, Mapping):
        raise EnvelopeError("an envelope is a JSON object")
    payload_type, listed = document.get("payloadType"), document.get("signatures", [])
    if not isinstance(payload_type, str):
        raise EnvelopeError("payloadType: a string is required")
    if not isinstance(listed, list):
        raise EnvelopeError("signatures: a list is required")
    signatures = []
    for number, one in enumerate(listed):
        if not isinstance(one, Mapping) or not isinstance(one.get("keyid", ""), str):
            raise EnvelopeError(f"signatures[{number}]: an object with a keyid and a sig is required")
        signatures.append(Signature(one.get("keyid", ""), _bytes(one.get("sig"), f"signatures[{number}].sig")))
    return Envelope(_bytes(document.get("payload"), "payload"), payload_type, tuple(signatures))


def canonical(document: Mapping[str, Any]) -> bytes:
    """A document in the form that is signed: keys sorted, no blanks, its signature left out.

    Raises TypeError for what JSON cannot say.
    """
    rest = {key: value for key, value in document.items() if key != SIGNATURE}
    return orjson.dumps(rest, option=orjson.OPT_SORT_KEYS)


def sign_document(body: bytes, signer: Signer | None) -> bytes:
    """A JSON object with its signature as the last member; its other bytes stay as they are.

    Without a signer the object stays unsigned. Raises ValueError where `body` is no JSON object, or is signed already.
    """
    document = orjson.loads(body)
    if not isinstance(document, dict):
        raise ValueError("only a JSON object can be signed")
    if SIGNATURE in document:
        raise ValueError("it has a signature already")
    if signer is None:
        return body
    message = pae(DOCUMENT_TYPE, orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
    comma = b"," if document else b""
    return b'%b%b"signature":%b}' % (body.rstrip()[:-1], comma, _signature_json(signer, message).encode())


def unsigned(signed: bytes) -> bytes:
    """The bytes that `sign_document` was given; those without a signature at their end as they are."""
    return _AT_THE_END.sub(b"}", signed)


def signature_of(document: Mapping[str, Any]) -> Signature | Fault:
    """The signature that a document carries, not yet believed; or why there is none."""
    signature = document.get(SIGNATURE)
    if signature is None:
        return "unsigned"
    if not isinstance(signature, Mapping) or not isinstance(signature.get("keyid"), str):
        return "malformed"
    try:
        sig = _bytes(signature.get("sig"), "signature.sig")
    except EnvelopeError:
        return "malformed"
    return Signature(signature["keyid"], sig)


def check_document(document: Mapping[str, Any], known: KnownKeys) -> Fault | None:
    """None where a known key signed this document (as `orjson.loads` gives it); else why that is not so."""
    signature = signature_of(document)
    if not isinstance(signature, Signature):
        return signature
    if signature.keyid not in known:
        return "unknown_signer"
    try:
        message = pae(DOCUMENT_TYPE, canonical(document))
    except TypeError:
        return "malformed"
    return known.fault(signature.keyid, signature.sig, message)


def _signature_json(signer: Signer, message: bytes) -> str:
    return f'{{"keyid":"{signer.keyid}","sig":"{base64.b64encode(signer.sign(message)).decode()}"}}'


def _bytes(text: Any, place: str) -> bytes:
    """Decode base64 in either alphabet, as DSSE asks; exactly one spelling in each is taken."""
    if not isinstance(text, str):
        raise EnvelopeError(f"{place}: base64 is required")
    try:
        standard = text.encode("ascii").translate(_STANDARD)
        content = binascii.a2b_base64(standard, strict_mode=True)
    except (UnicodeEncodeError, binascii.Error) as error:
        raise EnvelopeError(f"{place}: not base64: {error}") from error
    if base64.b64encode(content) != standard:
        raise EnvelopeError(f"{place}: not base64 as it is written")
    return content


_STANDARD: Final = bytes.maketrans(b"-_", b"+/")
