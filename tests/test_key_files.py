"""Who may read a signing key: its user, and nobody else, also where a platform gives it by a group."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streams.keys import KeyFault, read_signing_key, who_else, write_new

US, OURS, THEIRS = 65_532, 2_000, 3_000
GROUPS = {US, OURS}


def status(mode: int, uid: int, gid: int) -> os.stat_result:
    return os.stat_result((0o100_000 | mode, 0, 0, 1, uid, gid, 119, 0, 0, 0))


@pytest.mark.parametrize(
    ("mode", "uid", "gid"), [(0o600, US, US), (0o400, US, OURS), (0o440, 0, OURS), (0o640, 0, OURS)]
)
def test_a_file_of_ours_or_one_given_by_a_group_of_ours_is_a_key(mode: int, uid: int, gid: int) -> None:
    assert who_else(status(mode, uid, gid), US, GROUPS) is None


@pytest.mark.parametrize(
    ("mode", "uid", "gid"),
    [
        (0o644, US, US), (0o604, US, US), (0o444, 0, OURS), (0o601, US, US), (0o602, 0, OURS),  # others
        (0o640, US, US), (0o640, US, OURS), (0o620, US, US), (0o610, US, US),  # of ours: its group
        (0o640, 0, THEIRS), (0o440, 0, THEIRS),  # a group that we are not of
        (0o660, 0, OURS), (0o460, 0, OURS),  # may be changed
    ],
)  # fmt: skip
def test_a_file_that_anybody_else_may_use_is_none(mode: int, uid: int, gid: int) -> None:
    assert who_else(status(mode, uid, gid), US, GROUPS) is not None


@pytest.mark.parametrize("uid", [0, US])
def test_root_needs_no_group_to_read_and_so_none_may(uid: int) -> None:
    assert who_else(status(0o440, uid, OURS), 0, {0, OURS}) is not None


def test_a_secret_volume_swaps_a_link_and_the_file_that_it_names_is_judged(tmp_path: Path) -> None:
    for name, mode in (("one", 0o600), ("two", 0o640)):
        (tmp_path / name).mkdir()
        write_new(tmp_path / name / "guard.pem")
        (tmp_path / name / "guard.pem").chmod(mode)
    link, key = tmp_path / "..data", tmp_path / "guard.pem"
    link.symlink_to("one")
    key.symlink_to("..data/guard.pem")
    assert read_signing_key(key).keyid
    link.unlink()
    link.symlink_to("two")
    with pytest.raises(KeyFault, match="its group may use it"):
        read_signing_key(key)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_user_without_rights_reads_what_its_group_is_given(tmp_path: Path) -> None:
    key = tmp_path / "guard.pem"
    signer, _ = write_new(key)
    os.chown(key, 0, OURS)
    key.chmod(0o440)
    tmp_path.chmod(0o755)
    child = os.fork()
    if child == 0:  # no exception may leave it: it is a copy of all that pytest holds
        code = 1
        try:
            os.chdir(tmp_path)
            os.setgroups([OURS])
            os.setgid(US)
            os.setuid(US)
            code = 0 if read_signing_key(Path("guard.pem")).keyid == signer.keyid else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
