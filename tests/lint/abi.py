"""What programs that are linked with the shared library rely on: the names that it exports, and the layouts and numbers of its header.

    python3 tests/lint/abi.py [--build build] [--cc gcc] [--abi 0]

deploy/debian/libposenc0.symbols is the list of exported names; tests/lint/abi.c has the layouts. Prints one line per violation; status 1 if
there is one.
"""
import pathlib
import re
import shlex
import subprocess

import checker

SYMBOLS = "deploy/debian/libposenc0.symbols"
NEEDED = r"libjansson\.so\.\d+|libyaml-0\.so\.\d+|libpng16\.so\.\d+|libz\.so\.\d+|libopenblas\.so\.\d+|libblas\.so\.\d+|libm\.so\.\d+|libc\.so\.\d+|ld-linux.*"


def said(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True).stdout


def listed(text, abi):
    """The names of the list, which has the version's own name too."""
    return {name for name, version in re.findall(r"^ (\w+)@(\w+) ", text, re.M) if version == f"POSENC_{abi}" and name != version}


def exported(text, abi):
    """The names of nm's list."""
    return {name for name, version in re.findall(r" [A-Z] (\w+)@@(\w+)$", text, re.M) if version == f"POSENC_{abi}" and name != version}


def check_names(there, wanted, abi):
    for name in sorted(wanted - there):
        yield f"{name} is gone from libposenc.so.{abi}: raise ABI, or restore it"
    for name in sorted(there - wanted):
        yield f"{name} is new: add it to {SYMBOLS}"


def check_library(library, abi):
    about = said("readelf", "-d", "-lW", library)
    if f"[libposenc.so.{abi}]" not in about:
        yield f"{library}: its soname is not libposenc.so.{abi}"
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", about):
        if not re.fullmatch(NEEDED, needed):
            yield f"{library}: needs {needed}; allowed: the C library, its mathematics, BLAS, jansson, libyaml, libpng, zlib"
    if "TEXTREL" in about:
        yield f"{library}: has relocations in its text"
    if "NOW" not in about:
        yield f"{library}: binds its calls lazily"
    if re.search(r"GNU_STACK.*RWE", about):
        yield f"{library}: wants an executable stack"


def check_archive(archive):
    for name in sorted(set(re.findall(r" [A-TV-Z] (\w+)$", said("nm", "-g", "--defined-only", archive), re.M))):
        if not name.startswith("pe_"):
            yield f"{archive}: defines {name}, which does not begin with pe_"


def check_layouts(cc):
    done = subprocess.run([*shlex.split(cc), "-std=gnu11", "-I.", "-fsyntax-only", "tests/lint/abi.c"], capture_output=True, text=True)
    found = re.findall(r'error: static assertion failed.*?"(.*?)"|error: static_assert failed.*?"(.*?)"', done.stderr)
    yield from (f"{first or second}: raise ABI, or restore it" for first, second in found)
    if done.returncode and not found:
        yield f"tests/lint/abi.c: {done.stderr.strip().splitlines()[0]}"


def check_version(changelog, header):
    """The packages have the version of the library."""
    packaged, version = re.match(r"posenc \((.*?)\)", changelog)[1], re.search(r'^#define PE_VERSION "(.*)"', header, re.M)[1]
    numbers = ".".join(re.search(rf"^#define PE_VERSION_{part} (\d+)", header, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))
    if not packaged == version == numbers:
        yield f"deploy/debian/changelog has the version {packaged}, core/posenc.h {version} and {numbers}"


def problems(arguments):
    library = next(iter(sorted(arguments.build.glob("libposenc.so.*.*.*"))))
    there = exported(said("nm", "-D", "--defined-only", library), arguments.abi)
    yield from check_names(there, listed(pathlib.Path(SYMBOLS).read_text(), arguments.abi), arguments.abi)
    yield from check_library(library, arguments.abi)
    for archive in ("libposenc.a", "gen/libposenc.a"):
        yield from check_archive(arguments.build / archive)
    yield from check_layouts(arguments.cc)
    yield from check_version(pathlib.Path("deploy/debian/changelog").read_text(), pathlib.Path("core/posenc.h").read_text())


if __name__ == "__main__":
    checker.main(problems)
