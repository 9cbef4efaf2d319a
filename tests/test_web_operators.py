"""Who may act: names and digests in a file, read again when it changes; a file with a fault changes nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from typer.testing import CliRunner, Result

from streams.cli import app
from streams.settings import SettingsError
from streams.web.operators import Operators, line_of, new_token, read_entries


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tokens"
    lines = (f"alice {digest('a')}", f"  bob   {digest('b').upper()} # on call", f"alice {digest('c')}")
    path.write_text("\n".join(("# operators", "", *lines)))
    return path


def test_a_token_belongs_to_whom_its_line_names(file: Path) -> None:
    operators = Operators(file)
    assert [operators.bearer(token) for token in ("a", "b", "c", "d", "", "A", "é", "x" * 10_000)] == [
        "alice", "bob", "alice", None, None, None, None, None,
    ]  # fmt: skip
    assert list(operators.names()) == ["alice", "bob"]


def test_the_digest_is_no_token(file: Path) -> None:
    assert Operators(file).bearer(digest("a")) is None


def test_a_changed_file_is_read_again(file: Path) -> None:
    operators = Operators(file)
    file.write_text(f"carol {digest('new')}\n")
    assert (operators.bearer("new"), operators.bearer("a")) == ("carol", None)


def test_a_file_put_in_its_place_is_read_again_as_a_mounted_secret_is(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)
    operators = Operators(link)
    other = tmp_path / "other"
    other.write_text(f"carol {digest('new')}\n")
    (tmp_path / "next").symlink_to(other)
    (tmp_path / "next").replace(link)
    assert (operators.bearer("new"), operators.bearer("a")) == ("carol", None)


DIGEST = digest("a")
BAD = ["alice", f"alice {DIGEST} more", "alice 00", f"-x {DIGEST}", f"a/b {DIGEST}", f"al\0ce {DIGEST}"]


@pytest.mark.parametrize("line", BAD)
def test_a_file_with_a_fault_keeps_the_old_one_in_force_and_is_told_once_without_what_it_holds(
    file: Path, line: str
) -> None:
    operators = Operators(file)
    file.write_text(f"carol {digest('new')}\n{line}\n")
    with capture_logs() as logs:
        assert [operators.bearer(token) for token in ("a", "new", "a")] == ["alice", None, "alice"]
    assert [entry["log_level"] for entry in logs] == ["error"]
    assert "line 2" in logs[0]["why"]
    assert digest("a")[:8] not in str(logs)
    file.write_text(f"carol {digest('new')}\n")
    assert operators.bearer("new") == "carol"


def test_a_file_that_is_gone_keeps_the_old_one_in_force(file: Path) -> None:
    operators = Operators(file)
    file.unlink()
    assert operators.bearer("a") == "alice"


@pytest.mark.parametrize("line", BAD)
def test_a_file_with_a_fault_is_no_start(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(line)
    with pytest.raises(SettingsError, match=r"operator_tokens.*line 1"):
        Operators(path)
    with pytest.raises(SettingsError, match="No such file"):
        Operators(tmp_path / "none")
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(SettingsError, match="UTF-8"):
        Operators(path)


def test_two_names_for_one_token_are_refused() -> None:
    with pytest.raises(ValueError, match="same token"):
        read_entries(f"alice {digest('a')}\nbob {digest('a')}")


def test_a_file_that_others_may_write_is_warned_of(file: Path) -> None:
    file.chmod(0o666)
    with capture_logs() as logs:
        Operators(file)
    assert [entry["log_level"] for entry in logs] == ["warning"]
    file.chmod(0o644)
    with capture_logs() as logs:
        Operators(file)
    assert logs == []


def makes_token(operator: str, path: Path) -> Result:
    return CliRunner().invoke(app, ["keys", "token", "--operator", operator, "--out", str(path)])


def test_the_command_prints_a_token_alone_and_adds_the_line_that_lets_its_bearer_act(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    tokens = []
    for operator in ("alice", "bob", "alice"):
        said = makes_token(operator, path)
        assert said.exit_code == 0
        (token,) = said.stdout.splitlines()
        assert len(token) >= 43
        assert f"the token of {operator}, told this once" in said.stderr
        assert token not in path.read_text()
        tokens.append(token)
    assert [Operators(path).bearer(token) for token in tokens] == ["alice", "bob", "alice"]


def test_what_stood_in_the_file_stays_also_where_its_last_line_has_no_end(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# on call\n{line_of('carol', 't')}")
    token = makes_token("alice", path).stdout.strip()
    assert (Operators(path).bearer("t"), Operators(path).bearer(token)) == ("carol", "alice")
    assert path.read_text().startswith("# on call\n")


@pytest.mark.parametrize("held", [b"alice\n", b"\xff"])
def test_no_token_is_told_where_its_line_would_not_count(tmp_path: Path, held: bytes) -> None:
    path = tmp_path / "tokens"
    path.write_bytes(held)
    for where in (path, tmp_path, tmp_path / "none" / "tokens"):
        said = makes_token("alice", where)
        assert (said.exit_code, said.stdout) == (2, "")
        assert said.stderr.count("\n") == 1
    assert path.read_bytes() == held


def test_tokens_differ_and_bad_names_get_none(tmp_path: Path) -> None:
    assert new_token() != new_token()
    for name in ("", "a b", "a\nb", "#x", "é", "x" * 101):
        with pytest.raises(ValueError, match="operator"):
            line_of(name, "t")
    said = makes_token("a b", tmp_path / "tokens")
    assert (said.exit_code, said.stdout) == (2, "")
    assert not (tmp_path / "tokens").exists()
