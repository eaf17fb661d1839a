"""The bench's own parts with made-up figures: nothing is measured here."""
import contextlib
import json
import os
import pathlib
import shutil
import stat
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import computing  # noqa: E402
import driver  # noqa: E402
import measure  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402


def make_row(outcome=None, sort=rows.PEER, name="a", group="g", needs=()):
    def measured(_run):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
    return rows.Row(name, group, f"what {name} is", sort, needs, False, measured)


class NoPeers:
    """A run whose rows start nothing. Where two are compared, a row measures the next of their samples."""

    def __init__(self, samples=(), earlier=None):
        self.ended, self.pair, self.samples, self.earlier = 0, 0, samples, earlier

    def end_peers(self):
        self.ended += 1


def run_of(results, against=None):
    return {"machine": {**report.machine("avx512"), "cpu": "Testor 9000"}, "against": against, "rows": results}

# ---- Judging -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sort, outcome, verdict, status", [
    (rows.PEER, rows.speed([3, 3, 1], [2, 2, 2], "GB/s", "it"), "ahead", 0),
    (rows.PEER, rows.speed([1.9, 1.9, 3], [2, 2, 2], "GB/s", "it"), "level", 0),
    (rows.PEER, rows.speed([1.9, 1.8, 1], [2, 2, 2], "GB/s", "it"), "behind", 1),
    (rows.PEER, rows.cost([1, 1, 3], [2, 2, 2], "ms", "it"), "ahead", 0),
    (rows.PEER, rows.cost([2.1, 2.1, 1], [2, 2, 2], "ms", "it"), "level", 0),
    (rows.PEER, rows.cost([2.1, 2.2, 4], [2, 2, 2], "ms", "it"), "behind", 1),
    (rows.LIMIT, rows.speed([1e-9], [1], "GB/s", "memset"), "for the record", 0),
    (rows.LIMIT, rows.speed([1e9], [1], "GB/s", "memset"), "for the record", 0),
])
def test_a_peer_is_ahead_or_behind_beyond_the_spread_and_a_limit_is_never_judged(sort, outcome, verdict, status):
    result = report.judged(make_row(), sort, outcome)
    assert result["verdict"] == verdict and report.status(run_of([result])) == status

SMALL = [-0.01, 0.01, 0, -0.005, 0.005, 0.008, -0.008, 0, 0.002]  # what the machine adds to each pair
LARGE = [8 * noise for noise in SMALL]


@pytest.mark.parametrize("is_cost", [False, True])
@pytest.mark.parametrize("slower, noise, verdict", [(0, LARGE, "holds"), (0.04, SMALL, "holds"), (0.04, LARGE, "holds"), (0.08, SMALL, "short"),
                                                    (0.08, LARGE, "holds"), (0.25, LARGE, "short"), (-0.2, SMALL, "holds")])
def test_an_earlier_commit_is_judged_beyond_the_spread(slower, noise, verdict, is_cost):
    """Through the driver, which asks both sides for a sample in turn."""
    ratios = [1 - slower + x for x in noise]
    new = NoPeers([1 / ratio if is_cost else ratio for ratio in ratios], "abc1234")
    old = NoPeers([1] * len(noise), "abc1234")
    asked = []

    def measure(run):
        asked.append("old" if run is old else "new")
        return rows.Outcome([run.samples[run.pair]], [], "ms", is_cost=is_cost)

    row = rows.Row("a", "g", "", rows.LIMIT, ("nginx-of-nowhere",), False, measure)
    result = driver.measured(row, new, old, time.monotonic() + 60)
    assert result["verdict"] == verdict, result
    assert result["sort"] == "commit" and result["against"] == "abc1234" and len(result["samples"]["theirs"]) == len(noise)
    assert asked[:4] == ["old", "new", "new", "old"]
    assert report.status(run_of([result], "abc1234")) == (verdict == "short")


@pytest.mark.skipif(not shutil.which("git"), reason="no git")
@pytest.mark.parametrize("error", [None, KeyError])
def test_an_earlier_commit_is_built_beside_and_leaves_nothing(tmp_path, monkeypatch, error):
    monkeypatch.chdir(tmp_path)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "init", "-q"], check=True)
    for version in ("old", "new"):
        (tmp_path / "Makefile").write_text(f"all programs:\n\t@mkdir -p $(BUILD)\n\t@echo {version} >$(BUILD)/$@\n")
        subprocess.run([*git, "add", "Makefile"], check=True)
        subprocess.run([*git, "commit", "-qm", version], check=True)
    (tmp_path / "build/against/of_a_killed_run").mkdir(parents=True)
    with pytest.raises(error) if error else contextlib.nullcontext(), driver.built("HEAD~1", "build") as folder:
        assert [pathlib.Path(folder, name).read_text() for name in ("all", "programs")] == ["old\n", "old\n"]
        if error:
            raise error
    assert not pathlib.Path("build/against").exists()
    assert len(subprocess.run([*git, "worktree", "list"], capture_output=True, text=True).stdout.splitlines()) == 1


def test_the_figure_is_the_median_of_ratios_and_the_spread_their_quartiles():
    """Of medians it would be 10/10: a slow minute that affects both sides must not count."""
    assert rows.speed([10, 2, 30], [5, 10, 10], "x", "it").figure() == 2
    assert rows.times([0.001], [0.005], "it").figure() == pytest.approx(5)
    assert rows.speed([3, 1, 2, 9, 4, 5, 6, 7, 8], [1] * 9, "x", "it").spread() == (3, 7)
    assert rows.speed([2], [1], "x", "it").spread() == (2, 2)


def test_every_row_has_a_sort_and_words():
    names = [row.name for row in rows.ALL]
    assert len(names) == len(set(names)) and all(row.what for row in rows.ALL)
    assert {row.sort for row in rows.ALL} == {"peer", "limit", "commit"}
    assert {row.sort for row in driver.chosen_rows([], True, None)} == {"peer", "limit"}
    assert {row.sort for row in driver.chosen_rows([], True, "abc")} == {"peer", "limit", "commit"}

# ---- What cannot be measured ---------------------------------------------------------------------------------------------


def test_rows_without_their_peers_are_skipped_by_name(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    needy = [row for row in rows.ALL if row.needs]
    assert len(needy) > 20
    for row in needy:
        result = driver.measured(row, NoPeers(), None, time.monotonic() + 60)
        assert result["verdict"] == "skipped"
        assert "apt-get install" in result["note"]
        assert all(name in result["note"] for name in row.needs)


def test_a_lacking_option_a_late_hour_and_no_commit_skip(monkeypatch, tmp_path):
    (tmp_path / "posencd").parent.mkdir(exist_ok=True)
    program(tmp_path / "posencd", "echo '  --workers N  threads'")
    run = measure.Run(str(tmp_path))
    assert run.flag("--workers") == "--workers"
    with pytest.raises(rows.Skip, match="posencd has no --io-threads"):
        run.flag("--io-threads")
    row, alone = make_row(rows.speed([1], [1], "", "it")), make_row(rows.cost([1], [], "ms"), rows.COMMIT)
    assert driver.measured(row, run, None, time.monotonic() - 1)["verdict"] == "skipped"
    assert "make bench-against" in driver.measured(alone, run, None, time.monotonic() + 60)["note"]

# ---- The report ----------------------------------------------------------------------------------------------------------


def test_a_run_writes_json_and_markdown_and_says_what_fell_short(tmp_path, capsys):
    chosen = [make_row(rows.speed([6, 6], [2, 2], "GB/s", "NumPy"), name="first"),
              make_row(rows.cost([3.0], [2.0], "ms", "nginx"), name="second"),
              make_row(rows.speed([1], [4], "GB/s", "memset"), rows.LIMIT, "third"),
              make_row(rows.Skip("posencd has no --x"), name="fourth", group="h"),
              make_row(ValueError("torn"), name="fifth", group="h")]
    run = NoPeers()
    found = run_of(driver.measure_all(chosen, 1, run))
    report.write(tmp_path / "bench", found)
    read = json.loads((tmp_path / "bench.json").read_text())
    assert [r["verdict"] for r in read["rows"]] == ["ahead", "behind", "for the record", "skipped", "failed"]
    assert read["rows"][0]["samples"] == {"ours": [6, 6], "theirs": [2, 2]} and read["rows"][0]["figure"] == 3
    assert {"cpu", "isa", "kernel", "cores", "load", "congestion", "date", "commit"} <= set(read["machine"])
    assert run.ended == 2  # once for each group
    last = report.summary(found)
    assert last.startswith("On Testor 9000 (avx512, ") and last.endswith("; 1 against a limit, not judged; 1 skipped; 1 failed.")
    assert "2 rows were judged, each against a peer of the same run: 1 fell short, second (0.667× nginx)" in last
    assert report.status(found) == 2 and report.status(run_of(found["rows"][:3])) == 1 and report.status(run_of(found["rows"][:1])) == 0
    assert "1 rows were judged, each against the earlier commit abc: none fell short." in report.summary(run_of(found["rows"][:1], "abc"))
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 5 and "posencd has no --x" in printed[3]
    text = (tmp_path / "bench.md").read_text()
    assert "| what first is | peer | 6 GB/s | NumPy 2 GB/s | 3× (3–3) | ahead |" in text and "ValueError: torn" in text and last in text

# ---- The decoder in torch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["alibi", "rope"])
def test_the_peer_trains_the_same_decoder(scheme):
    """By the reference that the server's own losses are compared with: 20 losses, then the evaluation."""
    pytest.importorskip("torch")
    from peer_training import Training, plain
    asked = {"task": "local", "steps": 20, "train_len": 24, "eval_len": 40, "seed": 3}
    losses, found = Training(scheme, **asked).run()
    expected, _, (evaluation,) = plain.experiment({"scheme": scheme}, **asked)
    assert losses == pytest.approx(expected, abs=1e-3)
    assert found == pytest.approx({name: evaluation[name] for name in found}, abs=1e-3)


def test_another_decoder_is_no_peer():
    losses = [2.0 + 0.01 * step for step in range(1, 21)]
    computing.check_same({1: 2.01, 10: 2.1, 20: 2.2009}, losses)
    with pytest.raises(RuntimeError, match="another decoder"):
        computing.check_same({1: 2.01, 10: 2.1, 20: 2.2011}, losses)

# ---- Instruments ---------------------------------------------------------------------------------------------------------


def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_what_programs_print_is_read(tmp_path):
    program(tmp_path / "tests/bench/bench_answers", "[ $1 = table ] && echo '2e-05 5e-06 262144 1e-05'")
    program(tmp_path / "tests/bench/bench_numbers", "printf 'print f32 shortest    99.9 M/s\\n  strtod   7.5 M/s\\n  strtod   1.0 M/s\\n'")
    program(tmp_path / "tests/bench/bench_wire", "echo 0.5 100; echo 0.25 100")
    run = measure.Run(str(tmp_path))
    assert run.answer("table") == (2e-05, 5e-06, 262144, 1e-05)
    with pytest.raises(rows.Skip, match="no row other"):
        run.answer("other")
    assert run.numbers() == {"print f32 shortest": 99.9, "strtod": 7.5}
    assert run.transfers(1, "/", 2) == ([0.5, 0.25], 100)


def test_a_limit_that_an_earlier_commit_had_not_is_not_asked_for(tmp_path):
    program(tmp_path / "tests/bench/bench_answers", "echo '2e-05 0 262144 0'")
    assert computing.of_limit("json_map", "memcpy")(measure.Run(str(tmp_path), earlier="abc")).theirs == []


def test_wrk_is_read_and_refusals_are_not_counted_as_speed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    program(tmp_path / "wrk", "echo '  2000 requests in 2.00s, 1MB read'; echo 'Requests/sec:   1000.50'")
    assert measure.wrk("http://x", [os.getpid()], 2).per_second == 1000.5
    program(tmp_path / "wrk", "echo '  2000 requests in 2.00s'; echo '  Non-2xx or 3xx responses: 7'")
    with pytest.raises(RuntimeError, match="7 answers were refusals"):
        measure.wrk("http://x", [os.getpid()], 2)


def test_a_peer_and_its_children_end_with_the_block():
    with pytest.raises(KeyError):
        with peers.process(["sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as started:
            child = int(started.stdout.readline())
            assert child in peers.children(started.pid)
            started.stdout.close()
            raise KeyError
    assert started.poll() is not None
    state = pathlib.Path(f"/proc/{child}/status")
    end = time.monotonic() + 5
    while state.exists() and "Z (zombie)" not in state.read_text():  # one that has ended may wait for whoever inherited it
        assert time.monotonic() < end
        time.sleep(0.01)
