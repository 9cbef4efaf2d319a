"""Signatures: the vectors of the standards, and that nothing but what was signed is ever taken for it."""

from __future__ import annotations

import base64
import json
import stat
from pathlib import Path
from typing import Any

import orjson
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.keys import (
    ENVIRONMENT,
    KeyFault,
    ephemeral_key,
    known_keys,
    public_keys,
    public_pem,
    read_signing_key,
    signing_key,
    write_new,
)
from xapp.signing import (
    EnvelopeError,
    KnownKeys,
    Signer,
    check_document,
    keyid_of,
    open_envelope,
    pae,
    seal,
    sign_document,
)

# RFC 8032, section 7.1: secret key, public key, message, signature
RFC_8032 = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24"
        "655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aee"
        "b00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28d"
        "c027beceea1ec40a",
    ),
]

SIGNER = Signer.of_seed(bytes(range(32)))
STRANGER = Signer.of_seed(bytes(32))
KNOWN = KnownKeys([SIGNER.public_key])
TYPE = "application/vnd.example+json"


@pytest.mark.parametrize(("secret", "public", "message", "signature"), RFC_8032)
def test_signatures_are_those_of_rfc_8032(secret: str, public: str, message: str, signature: str) -> None:
    signer = Signer.of_seed(bytes.fromhex(secret))
    assert signer.public_key.public_bytes_raw().hex() == public
    assert signer.sign(bytes.fromhex(message)).hex() == signature
    known = KnownKeys([signer.public_key])
    assert known.fault(signer.keyid, bytes.fromhex(signature), bytes.fromhex(message)) is None


def test_what_is_signed_is_the_encoding_of_dsse() -> None:
    assert (
        pae("http://example.com/HelloWorld", b"hello world")
        == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )
    assert pae("ä", b"") == b"DSSEv1 2 \xc3\xa4 0 "
    envelope = orjson.loads(seal(b"hello world", "http://example.com/HelloWorld", SIGNER))
    assert envelope["payload"] == "aGVsbG8gd29ybGQ="
    assert envelope["payloadType"] == "http://example.com/HelloWorld"
    (signature,) = envelope["signatures"]
    assert signature["keyid"] == SIGNER.keyid
    SIGNER.public_key.verify(
        base64.b64decode(signature["sig"]), b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


def test_a_key_is_named_after_its_public_half() -> None:
    assert SIGNER.keyid.startswith("ed25519:")
    assert len(SIGNER.keyid) == len("ed25519:") + 32
    assert SIGNER.keyid == keyid_of(SIGNER.public_key) != STRANGER.keyid
    assert "key=" not in repr(SIGNER)


@given(payload=st.binary(max_size=300), kind=st.text(max_size=20).filter(lambda t: t.isprintable()))
def test_an_envelope_opens_to_what_was_sealed_and_is_believed_of_the_signer_alone(payload: bytes, kind: str) -> None:
    value = seal(payload, kind, SIGNER)
    assert value == seal(payload, kind, SIGNER)
    envelope = open_envelope(value)
    assert (envelope.payload, envelope.payload_type) == (payload, kind)
    assert envelope.verify(KNOWN) is None
    assert envelope.verify(KnownKeys([STRANGER.public_key])) == "unknown_signer"
    assert envelope.verify(KnownKeys()) == "unknown_signer"
    assert open_envelope(seal(payload, kind, None)).verify(KNOWN) == "unsigned"


@settings(max_examples=300)
@given(data=st.data())
def test_an_envelope_with_any_byte_changed_never_passes_for_other_content(data: st.DataObject) -> None:
    value = seal(b'{"a":1,"b":"text"}', TYPE, SIGNER)
    at = data.draw(st.integers(0, len(value) - 1))
    byte = data.draw(st.integers(0, 255))
    changed = value[:at] + bytes([byte]) + value[at + 1 :]
    try:
        envelope = open_envelope(changed)
    except EnvelopeError:
        return
    if envelope.verify(KNOWN) is None:
        assert (envelope.payload, envelope.payload_type) == (b'{"a":1,"b":"text"}', TYPE)


def test_a_keyid_of_a_known_key_proves_nothing() -> None:
    forged = orjson.loads(seal(b"x", TYPE, STRANGER))
    forged["signatures"][0]["keyid"] = SIGNER.keyid
    assert open_envelope(orjson.dumps(forged)).verify(KNOWN) == "bad_signature"


def test_one_known_signature_of_several_is_enough_and_both_alphabets_are_read() -> None:
    payload = bytes(range(250, 256)) * 3
    both = orjson.loads(seal(payload, TYPE, STRANGER))
    both["signatures"] += orjson.loads(seal(payload, TYPE, SIGNER))["signatures"]
    assert open_envelope(orjson.dumps(both)).verify(KNOWN) is None
    both["payload"] = base64.urlsafe_b64encode(payload).decode()
    assert "_" in both["payload"]
    both["signatures"][1]["sig"] = both["signatures"][1]["sig"].replace("+", "-").replace("/", "_")
    assert open_envelope(orjson.dumps(both | {"unknown": 1})).verify(KNOWN) is None


@pytest.mark.parametrize(
    "value",
    [
        b"", b"[]", b"{}", b'{"payload":"","signatures":[]}', b'{"payloadType":"t","payload":"a","signatures":[]}',
        b'{"payloadType":"t","payload":"YQ=","signatures":[]}', b'{"payloadType":"t","payload":"YR==","signatures":[]}',
        b'{"payloadType":"t","payload":"Y Q==","signatures":[]}',
        b'{"payloadType":"t","payload":"YQ==","signatures":{}}',
        b'{"payloadType":"t","payload":"YQ==","signatures":[{"sig":7}]}',
        b'{"payloadType":"t","payload":"\xc3\xa4aaa","signatures":[]}',
        b'{"payloadType":"t","payload":"YQ==","signatures":[{"keyid":1,"sig":"YQ=="}]}', b"\xff",
    ],
)  # fmt: skip
def test_what_is_no_envelope_is_refused(value: bytes) -> None:
    with pytest.raises(EnvelopeError):
        open_envelope(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
DOCUMENTS = st.dictionaries(st.text(max_size=8).filter(lambda key: key != "signature"), JSON, max_size=5)


def upside_down(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: upside_down(value[key]) for key in reversed(value)}
    return [upside_down(one) for one in value] if isinstance(value, list) else value


@given(document=DOCUMENTS)
def test_a_signed_document_verifies_in_any_order_and_spelling(document: dict[str, Any]) -> None:
    body = orjson.dumps(document)
    signed = sign_document(body, SIGNER)
    assert signed.startswith(body[:-1])
    read = orjson.loads(signed)
    assert {key: value for key, value in read.items() if key != "signature"} == orjson.loads(body)
    assert check_document(read, KNOWN) is None
    spelled = json.dumps(upside_down(read), indent=2, ensure_ascii=True)
    assert check_document(orjson.loads(spelled), KNOWN) is None
    assert check_document(read, KnownKeys()) == "unknown_signer"


@given(document=DOCUMENTS, other=DOCUMENTS)
def test_a_signature_is_of_one_document(document: dict[str, Any], other: dict[str, Any]) -> None:
    signature = orjson.loads(sign_document(orjson.dumps(document), SIGNER))["signature"]
    same = orjson.dumps(document, option=orjson.OPT_SORT_KEYS) == orjson.dumps(other, option=orjson.OPT_SORT_KEYS)
    assert (check_document(other | {"signature": signature}, KNOWN) is None) == same


def test_unsigned_is_said_and_a_signature_that_is_none_too() -> None:
    assert sign_document(b'{"a":1}', None) == b'{"a":1}'
    assert check_document({"a": 1}, KNOWN) == "unsigned"
    assert check_document({"a": 1, "signature": None}, KNOWN) == "unsigned"
    for signature in ("x", {}, {"keyid": 1, "sig": ""}, {"keyid": "k", "sig": 7}, {"keyid": "k", "sig": "%"}, []):
        assert check_document({"a": 1, "signature": signature}, KNOWN) == "malformed"
    assert check_document({"a": 2**70, "signature": {"keyid": SIGNER.keyid, "sig": ""}}, KNOWN) == "malformed"
    assert check_document({"a": 1, "signature": {"keyid": SIGNER.keyid, "sig": ""}}, KNOWN) == "bad_signature"


@pytest.mark.parametrize("body", [b"[1]", b"1", b"", b'{"signature":{}}'])
def test_only_an_unsigned_object_can_be_signed(body: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        sign_document(body, SIGNER)


def test_a_signed_document_is_no_envelope_of_the_same_content() -> None:
    document = orjson.loads(sign_document(b'{"a":1}', SIGNER))
    for kind in ("application/vnd.wirelessops.decision+json", "application/vnd.wirelessops.checkpoint+json"):
        envelope = {
            "payloadType": kind,
            "payload": base64.b64encode(b'{"a":1}').decode(),
            "signatures": [document["signature"]],
        }
        assert open_envelope(orjson.dumps(envelope)).verify(KNOWN) == "bad_signature"


def test_a_new_key_is_private_and_never_overwritten(tmp_path: Path) -> None:
    signer, public = write_new(tmp_path / "guard")
    assert public == tmp_path / "guard.pub.pem"
    assert stat.S_IMODE((tmp_path / "guard").stat().st_mode) == 0o600
    assert read_signing_key(tmp_path / "guard").keyid == signer.keyid
    assert list(known_keys([tmp_path])) == [signer.keyid]
    before = (tmp_path / "guard").read_bytes()
    with pytest.raises(KeyFault, match="File exists"):
        write_new(tmp_path / "guard")
    (tmp_path / "other.pub.pem").write_text("mine")
    with pytest.raises(KeyFault, match="File exists"):
        write_new(tmp_path / "other.pem")
    assert (tmp_path / "guard").read_bytes() == before
    assert not (tmp_path / "other.pem").exists()
    assert (tmp_path / "other.pub.pem").read_text() == "mine"


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o602, 0o610])
def test_a_signing_key_that_others_may_touch_is_refused(tmp_path: Path, mode: int) -> None:
    write_new(tmp_path / "guard")
    (tmp_path / "guard").chmod(mode)
    with pytest.raises(KeyFault, match=f"mode {mode:04o}"):
        read_signing_key(tmp_path / "guard")


def private_pem(key: Any, password: bytes | None = None) -> bytes:
    protection: Any = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, protection))


def test_keys_of_another_kind_are_refused_with_the_reason(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.touch(0o600)
    other = generate_private_key(SECP256R1())
    for content, reason in (
        (private_pem(other), "another type than Ed25519"),
        (private_pem(Ed25519PrivateKey.generate(), b"secret"), "passphrase"),
        (b"", "no private key"),
        (b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "no private key"),
        (public_pem(SIGNER.public_key), "no private key"),
    ):
        file.write_bytes(content)
        with pytest.raises(KeyFault, match=reason):
            read_signing_key(file)
    with pytest.raises(KeyFault, match="No such file"):
        read_signing_key(tmp_path / "none")
    with pytest.raises(KeyFault, match="directory"):
        read_signing_key(tmp_path)
    public = other.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    for content, reason in (
        (public, "another type"),
        (private_pem(SIGNER.key), "a private key"),
        (b"?", "no public key"),
    ):
        file.write_bytes(content)
        with pytest.raises(KeyFault, match=reason):
            public_keys(file)
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(KeyFault, match=r"no \*\.pem"):
        known_keys([empty])


def test_known_keys_come_from_files_of_several_and_from_folders(tmp_path: Path) -> None:
    third = ephemeral_key()
    (tmp_path / "two.pem").write_bytes(public_pem(SIGNER.public_key) + public_pem(STRANGER.public_key))
    (tmp_path / "readme.txt").write_text("no key")
    (tmp_path / "one").write_bytes(public_pem(third.public_key))
    assert set(known_keys([tmp_path, tmp_path / "one"])) == {SIGNER.keyid, STRANGER.keyid, third.keyid}


def test_the_signing_key_comes_from_the_file_that_is_named_else_from_the_environment(tmp_path: Path) -> None:
    signer, _ = write_new(tmp_path / "guard")
    seed = base64.b64encode(SIGNER.key.private_bytes_raw()).decode()
    assert signing_key(None, {}) is None
    assert signing_key(None, {ENVIRONMENT: ""}) is None
    for text in (seed, f" {seed}\n", private_pem(SIGNER.key).decode()):
        found = signing_key(None, {ENVIRONMENT: text})
        assert found is not None
        assert found.keyid == SIGNER.keyid
    named = signing_key(tmp_path / "guard", {ENVIRONMENT: seed})
    assert named is not None
    assert named.keyid == signer.keyid
    for text in ("x", seed[:-5], seed + seed, "-----BEGIN PRIVATE KEY-----"):
        with pytest.raises(KeyFault) as raised:
            signing_key(None, {ENVIRONMENT: text})
        assert seed[:8] not in str(raised.value)
