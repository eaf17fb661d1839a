"""The bench's own parts with made-up figures: nothing is measured here."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import driver  # noqa: E402
import measure  # noqa: E402
import peers  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402


def make_row(floor, outcome=None, name="a", group="g", needs=()):
    def measured(_run):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome
    return rows.Row(name, group, f"what {name} is", floor, "", needs, False, measured)


def kept(floor, outcome, isa="avx512"):
    return report.judged(make_row(floor), outcome, isa)


class NoPeers:
    """A run whose rows start nothing."""

    def __init__(self):
        self.ended = 0

    def end_peers(self):
        self.ended += 1


# ---- Floors --------------------------------------------------------------------------------------------------------------

def test_a_floor_is_judged_on_both_sides_of_it():
    assert kept(rows.at_least(4), rows.rate([8], [2], "x", "it"))["verdict"] == "holds"
    assert kept(rows.at_least(4), rows.rate([7.9], [2], "x", "it"))["verdict"] == "short"
    assert kept(rows.at_most(0.65), rows.rate([6.5], [10], "µs", "it"))["verdict"] == "holds"
    assert kept(rows.at_most(0.65), rows.rate([6.6], [10], "µs", "it"))["verdict"] == "short"
    assert kept(rows.between(1.9, 2.15), rows.alone([2.0], "×"))["verdict"] == "holds"
    assert kept(rows.between(1.9, 2.15), rows.alone([2.16], "×"))["verdict"] == "short"
    assert kept(rows.between(1.9, 2.15), rows.alone([1.89], "×"))["verdict"] == "short"
    assert kept(rows.RECORD, rows.alone([1], "×"))["verdict"] == "for the record"


def test_times_are_divided_the_other_way():
    result = kept(rows.at_least(4), rows.time_of([0.001], [0.005], "it"))
    assert result["figure"] == pytest.approx(5) and result["ours"] == pytest.approx(1)


@pytest.mark.parametrize("isa, floor", [("avx512", 0.22), ("avx2", 0.17), ("base", 0.07), ("neon", 0.07)])
def test_a_table_has_the_floor_of_the_instruction_set(isa, floor):
    assert rows.of_isa(**rows.TABLE).on(isa)[0] == floor


def test_a_floor_found_with_avx512_is_scaled_elsewhere_and_says_so():
    assert rows.at_least(0.055, wide=True).on("avx512") == (0.055, float("inf"), "")
    low, _, remark = rows.at_least(0.055, wide=True).on("avx2")
    assert low == pytest.approx(0.0425) and "0.055 is for AVX-512" in remark
    assert "AVX-512" in kept(rows.at_least(0.055, wide=True), rows.alone([1], ""), "avx2")["note"]
    assert rows.at_least(0.8).on("base") == (0.8, float("inf"), "")


def test_the_figure_is_the_median_of_ratios():
    """Of medians it would be 10/10: a slow minute that touches both sides must not count."""
    assert rows.rate([10, 2, 30], [5, 10, 10], "x", "it").figure() == 2
    assert rows.alone([1, 9, 2], "x", value=7).figure() == 7


def test_issue_six_is_covered_and_every_row_may_say_what_stands_in_its_way():
    names = [row.name for row in rows.ALL]
    assert len(names) == len(set(names)) and set(names) == set(report.OBSTACLES)
    assert {row.group for row in rows.ALL} == {"core", "attention", "text", "small", "large", "frameworks"}
    assert any(row.quick for row in rows.ALL) and all(row.what for row in rows.ALL)


# ---- Skipping ------------------------------------------------------------------------------------------------------------

def test_rows_without_their_peers_are_skipped_by_name(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(peers.importlib.util, "find_spec", lambda name: None)
    needy = [row for row in rows.ALL if row.needs]
    assert len(needy) > 20
    for row in needy:
        result = driver.measured(NoPeers(), row, "avx2", time.monotonic() + 60)
        assert result["verdict"] == "skipped"
        assert "apt-get install" in result["note"]
        assert all(name in result["note"] for name in row.needs)


def test_only_what_is_missing_is_named(monkeypatch, tmp_path):
    program(tmp_path / "wrk", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert peers.missing(["wrk"]) == ""
    assert peers.missing(["nginx", "wrk"]) == "no nginx: apt-get install --no-install-recommends nginx-light"


def test_a_lacking_option_and_a_late_hour_skip(monkeypatch, tmp_path):
    (tmp_path / "posencd").parent.mkdir(exist_ok=True)
    program(tmp_path / "posencd", "echo '  --workers N  threads'")
    run = measure.Run(str(tmp_path))
    assert run.flag("--workers") == "--workers"
    with pytest.raises(rows.Skip, match="posencd has no --io-threads"):
        run.flag("--io-threads")
    row = make_row(rows.RECORD, rows.alone([1], ""))
    assert driver.measured(run, row, "avx2", time.monotonic() - 1)["verdict"] == "skipped"


# ---- The report ----------------------------------------------------------------------------------------------------------

def test_a_run_writes_json_and_markdown(tmp_path, capsys):
    chosen = [make_row(rows.at_least(2), rows.rate([6, 6], [2, 2], "GB/s", "memset"), "first"),
              make_row(rows.at_most(1), rows.alone([3.0], "ms"), "second"),
              make_row(rows.at_least(1), rows.Skip("posencd has no --x"), "third", "h"),
              make_row(rows.at_least(1), ValueError("torn"), "fourth", "h")]
    run = NoPeers()
    found = {"machine": report.machine("avx2"), "quick": True, "rows": driver.measure_all(run, chosen, "avx2", 1)}
    report.write(tmp_path / "bench", found)
    read = json.loads((tmp_path / "bench.json").read_text())
    assert [r["verdict"] for r in read["rows"]] == ["holds", "short", "skipped", "failed"]
    assert read["rows"][0]["samples"] == {"ours": [6, 6], "theirs": [2, 2]} and read["rows"][0]["figure"] == 3
    assert {"cpu", "isa", "kernel", "cores", "load", "congestion", "date", "commit"} <= set(read["machine"])
    assert run.ended == 2  # once for each group
    table = (tmp_path / "bench.md").read_text()
    assert "| what first is | 6 GB/s | memset 2 GB/s | 3× | ≥ 2 |" in table and "ValueError: torn" in table
    assert "1 holds, 1 short, 1 skipped, 1 failed" in table
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4 and "posencd has no --x" in printed[2]


def test_obstacles_reach_the_table_without_measuring_again(tmp_path, monkeypatch):
    found = {"machine": report.machine("avx2"), "quick": False,
             "rows": [report.judged(make_row(rows.at_least(2), name="table"), rows.rate([1], [1], "GB/s", "memset"), "avx2")]}
    report.write(tmp_path / "bench", found)
    monkeypatch.setitem(report.OBSTACLES, "table", "half the registers")
    report.render(tmp_path / "bench")
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- bench:begin -->\n<!-- bench:end -->\nafter\n")
    splice = [sys.executable, str(HERE.parent / "lint/splice.py"), "write", str(readme), f"bench={tmp_path}/bench.md"]
    subprocess.run(splice, check=True, stdout=subprocess.DEVNULL)
    text = readme.read_text()
    assert "half the registers" in text and text.startswith("before") and text.endswith("after\n")


# ---- Instruments ---------------------------------------------------------------------------------------------------------

def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_what_programs_print_is_read(tmp_path):
    program(tmp_path / "tests/bench/bench_answers", "[ $1 = table ] && echo '2e-05 5e-06 262144'")
    program(tmp_path / "tests/bench/bench_numbers", "printf 'print f32 shortest    99.9 M/s\\n  strtod   7.5 M/s\\n  strtod   1.0 M/s\\n'")
    program(tmp_path / "tests/bench/bench_wire", "echo 0.5 100; echo 0.25 100")
    run = measure.Run(str(tmp_path))
    assert run.answer("table") == (2e-05, 5e-06, 262144)
    with pytest.raises(rows.Skip, match="no row other"):
        run.answer("other")
    assert run.numbers() == {"print f32 shortest": 99.9, "strtod": 7.5}
    assert run.transfers(1, "/", 2) == ([0.5, 0.25], 100)


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
    end = time.monotonic() + 5
    while pathlib.Path(f"/proc/{child}").exists() and is_running(child):
        assert time.monotonic() < end
        time.sleep(0.01)


def is_running(pid):
    """A process that has ended may wait for whoever inherited it to look."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_a_server_that_never_answers_is_given_up(monkeypatch):
    monkeypatch.setattr(peers, "START_SECONDS", 0.1)
    with peers.process(["sleep", "60"]) as started:
        with pytest.raises(RuntimeError, match="did not answer"):
            peers.wait_for(lambda: False, started, "it")


def test_processor_time_of_a_process_grows():
    before = peers.cpu_seconds([os.getpid()])
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    assert 0.03 < peers.cpu_seconds([os.getpid()]) - before < 5


def test_the_interleaving_takes_turns():
    seen = []
    first, second = measure.interleaved(2, lambda: seen.append("a") or 1, lambda: seen.append("b") or 2)
    assert seen == ["a", "b", "a", "b"] and first == [1, 1] and second == [2, 2]
