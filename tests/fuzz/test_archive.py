"""Archives of fuzz inputs: the same inputs give the same bytes, and every target has one that tar can unpack."""
import pathlib
import re
import subprocess
import sys
import tarfile

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import archive  # noqa: E402
import targets  # noqa: E402

TARGETS = sorted(p.stem[len("fuzz_"):] for p in HERE.glob("fuzz_*.c"))
INPUTS = {"b": b"\0\xff" * 300, "a": b"", "words_of_a_person": b"x"}


def test_the_order_of_inputs_and_the_hour_do_not_change_the_bytes(monkeypatch):
    first = archive.packed(INPUTS)
    monkeypatch.setattr("time.time", lambda: 4e9)
    assert archive.packed(dict(reversed(INPUTS.items()))) == first


def test_an_archive_with_the_same_inputs_is_left_alone(tmp_path):
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:  # not the bytes that pack() would write
        tar.add(__file__, "a")
    before = path.read_bytes()
    assert not archive.write(path, {"a": pathlib.Path(__file__).read_bytes()})
    assert path.read_bytes() == before
    assert archive.write(path, INPUTS)
    assert archive.read(path) == INPUTS and archive.read(tmp_path / "absent.tar.gz") == {}


def test_a_folder_loses_what_the_archive_does_not_have(tmp_path):
    (tmp_path / "stale").write_bytes(b"x")
    archive.to_folder(INPUTS, tmp_path)
    assert archive.from_folder(tmp_path) == INPUTS


def test_the_shortest_inputs_are_kept_and_named_ones_stay(monkeypatch):
    monkeypatch.setattr(targets, "FILES_MAX", 3)
    monkeypatch.setattr(targets, "BYTES_MAX", 100)
    given = {"words_of_a_person": b"g" * 50}
    merged = {"c" * 40: b"3" * 3, "a" * 40: b"2" * 2, "b" * 40: b"1"}
    assert set(targets.chosen(given, merged)) == {"words_of_a_person", "b" * 40, "a" * 40}
    assert set(targets.chosen(given, {"a" * 40: b"x" * 51, "b" * 40: b"y" * 50})) == {"words_of_a_person", "b" * 40}


def test_every_target_has_an_archive():
    assert sorted(p.name[:-len(".tar.gz")] for p in archive.CORPUS.iterdir()) == TARGETS
    assert sorted(targets.TARGETS) == TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_the_archive_of(name, tmp_path):
    """Plain files in one folder, in order, without times and owners; tar and Python read the same."""
    path = archive.path_of(name)
    with tarfile.open(path) as tar:
        members = tar.getmembers()
    names = [m.name for m in members]
    assert names and names == sorted(set(names))
    for member in members:
        assert member.isreg() and re.fullmatch(r"[A-Za-z0-9_]+", member.name)  # the replay skips hidden files
        assert (member.mtime, member.uid, member.gid, member.uname, member.gname) == (0, 0, 0, "", "")
    assert len(members) <= targets.FILES_MAX + sum(len(n) != 40 for n in names)
    subprocess.run(["tar", "-xzf", path, "-C", tmp_path], check=True)
    assert archive.from_folder(tmp_path) == archive.read(path)
