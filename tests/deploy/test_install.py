"""What `make install` copies, used as a stranger uses it: from the folder where it was put, whose name has a space. `make test` runs it."""
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("POSENCD", ROOT / "build/posencd")).resolve().parent
pytestmark = pytest.mark.skipif("POSENC_SANITIZED" in os.environ, reason="there is no shared library of sanitizers")

# Both languages. Row 3 of rope's first column is cos(3), of its second cos(3 / 100).
PROGRAM = """
#include <posenc.h>
#include <stdio.h>

static void no_wait(void) {}

int main(void)
{
    struct pe_ask *ask = pe_ask_new("encode");
    struct pe_plan *plan;
    struct pe_error err;
    float row[2];
    int was_free = pe_on_wait(no_wait) && pe_isa_use(PE_ISA_BASE);
    pe_ask_text(ask, "scheme", "rope");
    pe_ask_integer(ask, "head_dim", 4);
    pe_ask_integer(ask, "len", 4);
    if (pe_ask_plan(ask, &plan, &err)) {
        fprintf(stderr, "%s %s\\n", err.pointer, err.detail);
        return 1;
    }
    pe_fill(plan, 0, 6, 2, row);
    printf("%s %s %d.%d.%d %s %.9g %.9g", PE_VERSION, pe_version(), PE_VERSION_MAJOR, PE_VERSION_MINOR, PE_VERSION_PATCH,
           pe_output_name(plan, 0), (double)row[0], (double)row[1]);
    printf(" %d%d%d%d", was_free, pe_on_wait(NULL), pe_isa_use(PE_ISA_BASE), pe_isa() == PE_ISA_BASE);
    pe_plan_free(plan);
    pe_ask_free(ask);
    return 0;
}
"""


def run(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **more)


def make(*arguments):
    """Builds nothing: other tests use the same programs."""
    done = run("make", "-o", "all", *arguments, f"BUILD={os.path.relpath(BUILD, ROOT)}", cwd=ROOT, env={**os.environ, "MAKEFLAGS": ""})
    assert done.returncode == 0, done.stderr
    return done


def files(folder):
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if not path.is_dir() or path.is_symlink()}


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("in stalled") / "a prefix"
    make("install", f"PREFIX={folder}")
    return folder


@pytest.fixture(scope="module")
def environment(prefix):
    return {**os.environ, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig"), "LD_LIBRARY_PATH": str(prefix / "lib")}


def compiled(compiler, source, out, environment, *more):
    flags = run("pkg-config", "--cflags", "--libs", *more, "posenc", env=environment)
    assert flags.returncode == 0, flags.stderr
    return run(*shlex.split(compiler), "-Wall", "-Wextra", "-pedantic", "-Werror", source, "-x", "none", *shlex.split(flags.stdout), "-o", out)


COMPILERS = ["gcc -x c -std=c99", "gcc -x c -std=c11", "g++ -x c++ -std=c++11", "g++ -x c++ -std=c++20", "clang -x c -std=c99",
             "clang -x c++ -std=c++11"]


@pytest.fixture(params=COMPILERS)
def compiler(request):
    if not shutil.which(request.param.split()[0]):
        pytest.skip(f"{request.param.split()[0]} is not installed")
    return request.param


def test_a_program_is_compiled_with_what_pkg_config_prints(compiler, prefix, environment, tmp_path):
    (tmp_path / "program.c").write_text(PROGRAM)
    done = compiled(compiler, tmp_path / "program.c", tmp_path / "program", environment)
    assert done.returncode == 0, done.stderr
    version, running, numbers, name, *row, process = run(tmp_path / "program", env=environment).stdout.split()
    assert process == "1001" # chosen before the first plan, and not after it
    assert version == running == numbers == run("pkg-config", "--modversion", "posenc", env=environment).stdout.strip()
    assert name == "cos" and [np.float32(x) for x in row] == [np.float32(np.cos(3)), np.float32(np.cos(0.03))]
    assert run(prefix / "bin/posencd", "--version").stdout.split()[1] == version


def test_the_example_in_c(compiler, prefix, environment, tmp_path):
    source = prefix / "share/doc/libposenc-dev/examples/table.c"
    done = compiled(compiler, source, tmp_path / "table", environment)
    assert done.returncode == 0, done.stderr
    name, *numbers = run(tmp_path / "table", env=environment).stdout.split()
    assert name == "encoding" and [np.float32(x) for x in numbers] == [np.float32(np.sin(1)), np.float32(np.cos(2047))]


def test_the_example_is_linked_with_the_archive_too(prefix, environment, tmp_path):
    shared = tmp_path / "only the archive"
    shutil.copytree(prefix, shared, symlinks=True)
    for library in (shared / "lib").glob("*.so*"):
        library.unlink()
    flags = run("pkg-config", "--static", "--cflags", "--libs", "posenc", env=environment).stdout.replace(str(prefix).replace(" ", r"\ "), str(shared).replace(" ", r"\ "))
    done = run("gcc", prefix / "share/doc/libposenc-dev/examples/table.c", *shlex.split(flags), "-o", tmp_path / "table")
    assert done.returncode == 0, done.stderr
    assert run(tmp_path / "table").stdout.startswith("encoding 0.841470")


def test_a_program_without_pe_call_links_core_alone(prefix, environment, tmp_path):
    blas = shlex.split(run("pkg-config", "--libs", "openblas").stdout) or ["-lopenblas"]
    for example, more in ("table", []), ("diagnose", ["-ljansson", "-lyaml", "-lpng", "-lz"]):
        source = prefix / f"share/doc/libposenc-dev/examples/{example}.c"
        done = run("gcc", f"-I{prefix}/include", source, prefix / "lib/libposenc.a", *more, *blas, "-lm", "-o", tmp_path / example)
        assert done.returncode == 0, done.stderr
        needed = run("readelf", "-d", tmp_path / example).stdout
        assert run(tmp_path / example).returncode == 0 and ("libjansson" in needed) == bool(more)


SWAPPED = "The tensor has the layout interleaved; the configuration has half."


def test_the_diagnosis_in_c(compiler, prefix, environment, tmp_path):
    source = prefix / "share/doc/libposenc-dev/examples/diagnose.c"
    done = compiled(compiler, source, tmp_path / "diagnose", environment)
    assert done.returncode == 0, done.stderr
    assert SWAPPED in run(tmp_path / "diagnose", env=environment).stdout


def test_the_diagnosis_by_ctypes(prefix, environment):
    done = run("/usr/bin/python3", prefix / "share/doc/libposenc-dev/examples/diagnose.py", prefix / "lib/libposenc.so.0")
    assert done.returncode == 0 and SWAPPED in done.stdout, done.stderr


@pytest.mark.skipif(not shutil.which("rustc"), reason="rustc is not installed")
def test_the_diagnosis_in_rust(prefix, environment, tmp_path):
    done = run("rustc", "-Dwarnings", "-L", prefix / "lib", prefix / "share/doc/libposenc-dev/examples/diagnose.rs", "-o", tmp_path / "diagnose", env=environment)
    if "error: no override and no default toolchain" in done.stderr or "could not choose a version" in done.stderr:
        pytest.skip("rustup has no toolchain")
    assert done.returncode == 0, done.stderr
    assert SWAPPED in run(tmp_path / "diagnose", env=environment).stdout


def test_the_diagnosis_in_node(prefix, environment, tmp_path):
    """With koffi where it is installed: build/tools/node_modules, or a folder of NODE_PATH."""
    places = [ROOT / "build/tools/node_modules", *map(pathlib.Path, os.environ.get("NODE_PATH", "none").split(":"))]
    there = next((place for place in places if (place / "koffi").is_dir()), None)
    if not shutil.which("node") or not there:
        pytest.skip("node or its package koffi is not installed")
    (tmp_path / "node_modules").symlink_to(there)
    shutil.copy(prefix / "share/doc/libposenc-dev/examples/diagnose.mjs", tmp_path)
    done = run("node", tmp_path / "diagnose.mjs", prefix / "lib/libposenc.so.0", env=environment)
    assert done.returncode == 0 and SWAPPED in done.stdout, done.stderr


def test_the_example_by_ctypes(prefix, environment):
    example = prefix / "share/doc/libposenc-dev/examples/table.py"
    done = run("/usr/bin/python3", example, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["(2048,", "32)", str(np.float32(np.cos(2047))), str(np.float32(np.sin(2047)))]
    code = f"""import sys; sys.argv = ["", {str(prefix / 'lib/libposenc.so.0')!r}]
exec(open({str(example)!r}).read())
angles = np.arange(2048)[:, None] * 10000.0 ** (-np.arange(32) / 32)
assert np.array_equal(cos, np.cos(angles).astype("f4")) or np.abs(cos - np.cos(angles)).max() < 1e-7
try:
    table("cos", "rope", lenn=3)
except ValueError as error:
    print(error)"""
    done = run("/usr/bin/python3", "-c", code)
    assert done.returncode == 0 and done.stdout.splitlines()[-1] == 'unknown field "lenn"; nearest: "len"', done.stderr


def test_the_shared_library_exports_the_header_alone(prefix):
    """That it exports what it did, and how it is linked: tests/lint/abi.py."""
    names = set(re.findall(r" [A-Z] (pe_\w+)@@POSENC_0$", run("nm", "-D", "--defined-only", prefix / "lib/libposenc.so").stdout, re.M))
    header = (prefix / "include/posenc.h").read_text()
    assert names == set(re.findall(r"^PE_API [^;]*?\b(pe_\w+)\(", header, re.M)) and len(names) > 20 and header.count("\n") <= 300


def test_nothing_installed_names_destdir_or_the_source(tmp_path):
    make("install", f"DESTDIR={tmp_path}/staged", "PREFIX=/usr", "LIBDIR=/usr/lib/multi")
    there = files(tmp_path / "staged")
    assert {"usr/bin/posencd", "usr/bin/posenc", "usr/include/posenc.h", "usr/share/man/man8/posencd.8", "usr/share/man/man1/posenc.1",
            "usr/share/bash-completion/completions/posenc", "usr/share/zsh/site-functions/_posenc",
            "usr/share/fish/vendor_completions.d/posenc.fish", "usr/lib/multi/libposenc.a", "usr/lib/multi/libposenc.so.0", "usr/lib/multi/libposenc.so",
            "usr/lib/multi/pkgconfig/posenc.pc", "usr/lib/systemd/system/posenc.service",
            "usr/lib/sysusers.d/posenc.conf"} <= set(there)
    for name, path in there.items():
        content = path.read_bytes()
        assert str(tmp_path).encode() not in content and str(ROOT).encode() not in content, name
    assert "libdir=/usr/lib/multi\n" in there["usr/lib/multi/pkgconfig/posenc.pc"].read_text()
    assert "ExecStart=/usr/bin/posencd --config /etc/posenc/posencd.json" in there["usr/lib/systemd/system/posenc.service"].read_text()
    make("uninstall", f"DESTDIR={tmp_path}/staged", "PREFIX=/usr", "LIBDIR=/usr/lib/multi")
    assert not files(tmp_path / "staged")


@pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
@pytest.mark.parametrize("page", ["man8/posencd.8", "man1/posenc.1"])
def test_manual_pages_have_every_option_and_no_warning(prefix, page):
    done = run("man", "--warnings", "-l", prefix / "share/man" / page, env={**os.environ, "MANROFFSEQ": "", "MANWIDTH": "80", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    told = re.sub(r"-\n *", "-", done.stdout)
    listed = run(prefix / "bin" / page.split("/")[1].split(".")[0], "--help").stdout
    assert not [flag for flag in re.findall(r"^  --([\w-]+)", listed, re.M) if f"--{flag}" not in told]


def test_uninstall_keeps_the_files_of_others(prefix, tmp_path):
    make("install", f"PREFIX={tmp_path}/p q")
    (tmp_path / "p q/lib/other.so").touch()
    make("uninstall", f"PREFIX={tmp_path}/p q")
    assert set(files(tmp_path / "p q")) == {"lib/other.so"}
