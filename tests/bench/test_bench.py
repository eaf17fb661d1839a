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
    return rows.Row(name, group, f"what {name} is", floor, needs, False, measured)


def kept(floor, outcome, isa="avx512"):
    return report.judged(make_row(floor), outcome, isa)


class NoPeers:
    """A run whose rows start nothing."""

    def __init__(self):
        self.ended = 0

    def end_peers(self):
        self.ended += 1


# ---- Floors --------------------------------------------------------------------------------------------------------------

def test_a_floor_is_a_tenth_less_than_what_was_reached():
    assert kept(rows.reached(avx2=4, avx512=5), rows.rate([9.1], [2], "x", "it"))["verdict"] == "holds"
    assert kept(rows.reached(avx2=4, avx512=5), rows.rate([8.9], [2], "x", "it"))["verdict"] == "short"
    assert kept(rows.reached(avx2=4, avx512=5), rows.rate([7.3], [2], "x", "it"), "avx2")["verdict"] == "holds"
    assert kept(rows.reached(avx2=4, avx512=5), rows.rate([7.1], [2], "x", "it"), "avx2")["verdict"] == "short"
    assert kept(rows.reached_cost(avx2=0.6), rows.rate([6.5], [10], "µs", "it"))["verdict"] == "holds"
    assert kept(rows.reached_cost(avx2=0.6), rows.rate([6.7], [10], "µs", "it"))["verdict"] == "short"


def test_a_law_has_two_sides_and_the_record_none():
    for isa in ("base", "avx2", "avx512"):
        assert kept(rows.law(1.9, 2.15), rows.alone([2.0], "×"), isa)["verdict"] == "holds"
        assert kept(rows.law(1.9, 2.15), rows.alone([2.16], "×"), isa)["verdict"] == "short"
        assert kept(rows.law(1.9, 2.15), rows.alone([1.89], "×"), isa)["verdict"] == "short"
        assert kept(rows.RECORD, rows.alone([1], "×"), isa)["verdict"] == "for the record"


def test_where_runs_differ_the_worst_counts():
    low, high, reached, _ = rows.reached(avx2=(0.7, 0.5)).on("avx2")
    assert low == pytest.approx(0.45) and high == float("inf") and reached == "0.5–0.7"
    low, high, reached, _ = rows.reached_cost(avx2=(0.7, 0.5)).on("avx2")
    assert low == -float("inf") and high == pytest.approx(0.77) and reached == "0.5–0.7"


def test_times_are_divided_the_other_way():
    result = kept(rows.reached(avx2=4), rows.time_of([0.001], [0.005], "it"))
    assert result["figure"] == pytest.approx(5) and result["ours"] == pytest.approx(1)


@pytest.mark.parametrize("isa, floor, reached", [("avx512", 0.333, "0.37"), ("avx2", 0.1971, "0.219")])
def test_each_class_has_the_floor_of_its_own_figure(isa, floor, reached):
    low, _, said, remark = rows.reached(avx2=0.219, avx512=0.37).on(isa)
    assert low == pytest.approx(floor) and said == reached and not remark


def test_without_a_figure_of_avx512_the_floor_is_avx2_s_and_says_so():
    low, _, _, remark = rows.reached(avx2=10).on("avx512")
    assert low == 9 and "no figure of AVX-512" in remark
    assert "no figure of AVX-512" in kept(rows.reached(avx2=10), rows.alone([1], ""))["note"]
    assert rows.reached(avx2=10).on("avx2")[3] == ""


@pytest.mark.parametrize("isa", ["base", "neon"])
def test_a_machine_of_neither_class_is_not_judged(isa):
    result = kept(rows.reached(avx2=10, avx512=20), rows.alone([1], ""), isa)
    assert result["verdict"] == "for the record" and result["floor"] == "–" and f"no figures of {isa}" in result["note"]


@pytest.mark.parametrize("classes", [{"avx512": 1}, {"avx2": 1, "avx1024": 2}, {}])
def test_figures_of_other_classes_are_refused(classes):
    with pytest.raises(ValueError):
        rows.reached(**classes)


def test_most_rows_are_judged_and_figures_are_sensible():
    judged = [row for row in rows.ALL if row.floor.reached]
    assert len(judged) + sum(bool(row.floor.law) for row in rows.ALL) >= len(rows.ALL) - 5
    for row in judged:
        assert all(figure > 0 for figures in row.floor.reached.values() for figure in figures)
        assert row.floor.is_cost == (row.name in ("probs", "get_cpu", "p99", "p99_nginx", "memory")), row.name


def test_the_figure_is_the_median_of_ratios():
    """Of medians it would be 10/10: a slow minute that touches both sides must not count."""
    assert rows.rate([10, 2, 30], [5, 10, 10], "x", "it").figure() == 2
    assert rows.alone([1, 9, 2], "x", value=7).figure() == 7


def test_every_group_has_rows_and_every_row_may_say_what_limits_it():
    names = [row.name for row in rows.ALL]
    assert len(names) == len(set(names)) and set(names) == set(report.OBSTACLES)
    assert {row.group for row in rows.ALL} == {"core", "attention", "analysis", "text", "small", "large", "diagnosis", "work",
                                               "experiment", "frameworks"}
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
    chosen = [make_row(rows.reached(avx2=2), rows.rate([6, 6], [2, 2], "GB/s", "memset"), "first"),
              make_row(rows.reached_cost(avx2=1), rows.alone([3.0], "ms"), "second"),
              make_row(rows.reached(avx2=1), rows.Skip("posencd has no --x"), "third", "h"),
              make_row(rows.reached(avx2=1), ValueError("torn"), "fourth", "h")]
    run = NoPeers()
    found = {"machine": report.machine("avx2"), "quick": True, "rows": driver.measure_all(run, chosen, "avx2", 1)}
    report.write(tmp_path / "bench", found)
    read = json.loads((tmp_path / "bench.json").read_text())
    assert [r["verdict"] for r in read["rows"]] == ["holds", "short", "skipped", "failed"]
    assert read["rows"][0]["samples"] == {"ours": [6, 6], "theirs": [2, 2]} and read["rows"][0]["figure"] == 3
    assert {"cpu", "isa", "kernel", "cores", "load", "congestion", "date", "commit"} <= set(read["machine"])
    assert run.ended == 2  # once for each group
    table = (tmp_path / "bench.md").read_text()
    assert "| what first is | 6 GB/s | memset 2 GB/s | 3× | ≥ 1.8 | 2 | holds |" in table and "ValueError: torn" in table
    assert "1 holds, 1 short, 1 skipped, 1 failed" in table
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4 and "posencd has no --x" in printed[2]


def test_obstacles_reach_the_table_without_measuring_again(tmp_path, monkeypatch):
    found = {"machine": report.machine("avx2"), "quick": False,
             "rows": [report.judged(make_row(rows.reached(avx2=2), name="table"), rows.rate([1], [1], "GB/s", "memset"), "avx2")]}
    report.write(tmp_path / "bench", found)
    monkeypatch.setitem(report.OBSTACLES, "table", "half the registers")
    report.render(tmp_path / "bench")
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- bench:begin -->\n<!-- bench:end -->\nafter\n")
    splice = [sys.executable, str(HERE.parent / "lint/splice.py"), "write", str(readme), f"bench={tmp_path}/bench.md"]
    subprocess.run(splice, check=True, stdout=subprocess.DEVNULL)
    text = readme.read_text()
    assert "half the registers" in text and text.startswith("before") and text.endswith("after\n")


# ---- The decoder in torch ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("scheme", ["alibi", "rope"])
def test_the_peer_trains_the_same_decoder(scheme):
    """By the reference that the server's own losses are compared with: 20 losses, then the evaluation."""
    pytest.importorskip("torch")
    from peer_training import Training, plain
    asked = {"task": "local", "steps": 20, "train_len": 24, "eval_len": 40, "seed": 3}
    losses, found = Training(scheme, **asked).run()
    expected, (evaluation,) = plain.experiment({"scheme": scheme}, **asked)
    assert losses == pytest.approx(expected, abs=1e-3)
    assert found == pytest.approx({name: evaluation[name] for name in found}, abs=1e-3)


def test_another_decoder_is_no_peer():
    import experiment
    losses = [2.0 + 0.01 * step for step in range(1, 21)]
    experiment.check_same({1: 2.01, 10: 2.1, 20: 2.2009}, losses)
    with pytest.raises(RuntimeError, match="another decoder"):
        experiment.check_same({1: 2.01, 10: 2.1, 20: 2.2011}, losses)


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
