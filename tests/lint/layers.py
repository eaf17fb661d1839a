"""Holds the layers: who may include what, and who may call what.

    python3 tests/lint/layers.py [--cc gcc] [--root .]                   includes
    python3 tests/lint/layers.py --calls [--build build] [--root .]      calls, from the objects' undefined symbols

Includes are judged twice: by the compiler's -M output, which sees everything a file reaches through other headers, and by
the file's own #include lines, which say what it asks for itself. Prints one line per violation; status 1 if there is one.
"""
import fnmatch
import pathlib
import re
import shlex
import subprocess

import checker

C_LIBRARY = {"assert.h", "complex.h", "ctype.h", "errno.h", "fenv.h", "float.h", "inttypes.h", "iso646.h", "limits.h",
             "locale.h", "math.h", "setjmp.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h",
             "stdio.h", "stdlib.h", "stdnoreturn.h", "string.h", "strings.h", "tgmath.h", "wchar.h", "wctype.h"}
INTRINSICS = {"immintrin.h", "arm_neon.h", "x86intrin.h"}

# Each outside library may be included by these files only.
DOORS = {
    "cblas.h": ["core/numeric/gemm.c"],
    "curl/curl.h": ["server/store/web.c"],
    "jansson.h": ["api/*.c", "api/*.h"],
    "png.h": ["api/formats/png.c"],
    "yaml.h": ["api/inputs/pasted/yaml.c"],
    "microhttpd.h": ["server/transport/daemon.c", "server/transport/response.c"],
    "zlib.h": ["api/endpoints/pages.c", "api/formats/npz.c", "api/formats/png.c", "api/inputs/npz.c", "api/replies/reply.c"],
    "gnutls/gnutls.h": ["server/transport/tls.c"],
    "gnutls/x509.h": ["server/transport/tls.c"],
    "nettle/memops.h": ["server/auth/tokens.c"],
    "nettle/sha2.h": ["server/auth/tokens.c"],
    "uv.h": ["server/loop/loop.c"],
}

# The headers of core/ that the layers above may include: inside.h, and what it includes.
PUBLIC = ["core/posenc.h", "core/inside.h", "core/studies.h", "core/outside.h", "core/operation_list.h"]

# folder: (our own headers a file may reach, system headers it may name besides the C library; None: any)
LAYERS = {
    "core": (["core/*.h", "core/schemes/list.h", "core/kernels/kernels.h", "core/kernels/names.h", "core/kernels/narrow.h"], set()),
    "core/schemes": (["core/*.h", "core/schemes/*.h"], set()),
    "core/kernels": (["core/kernels/*.h"], INTRINSICS),
    "api": (["api/*.h", *PUBLIC], {"zlib.h", "yaml.h", "sys/random.h"}),
    "api/numbers/kernels": (["api/numbers/kernels/*.h"], INTRINSICS),
    "server": (["server/*.h", "api/api.h", *PUBLIC], None),
}
# The headers of the clock, which only server/ may include.
NO_CLOCK = {"time.h", "sys/time.h"}

FORBIDDEN_CALLS = {
    "core": r"(secure_)?getenv|setlocale|f?open(64)?|fdopen|freopen|creat|read|write|v?f?printf|f?put[cs]|putchar|fwrite|perror"
            r"|stdout|stderr|stdin|pthread_\w+|thrd_\w+|time|clock|clock_gettime|gettimeofday|rand|random|srand|exit|abort|signal"
            r"|socket|json_\w+|MHD_\w+|uv_\w+",
    "api": r"(secure_)?getenv|setlocale|f?open(64)?|fdopen|creat|v?f?printf|stdout|stderr|pthread_\w+|time|clock|clock_gettime"
           r"|gettimeofday|exit|signal|socket|bind|listen|accept4?|recv\w*|send\w*|MHD_\w+|uv_\w+",
    "server": r"json_\w+|sincosf?|sinf?|cosf?|tanf?|expf?|exp2f?|powf?|logf?|log2f?|cblas_\w+|openblas_\w+",
}


def folder_of(path):
    """The layer a file belongs to: the longest folder of LAYERS that holds it, such as core/schemes."""
    above = (folder.as_posix() for folder in pathlib.PurePath(path).parents)
    return next((folder for folder in above if folder in LAYERS), pathlib.PurePath(path).parts[0])


def matches(path, patterns):
    return any(fnmatch.fnmatch(path, p) for p in patterns)


def own_lines(text):
    """(how, header) of every #include line."""
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', text, re.M)


def reached(root, cc, path):
    """Every header a file reaches, ours as paths from the root, the system's as absolute paths."""
    flags = ["-DPE_ISA_SUFFIX=base"] if folder_of(path) == "core/kernels" else []
    run = subprocess.run([*shlex.split(cc), "-std=gnu11", "-I.", *flags, "-M", path], cwd=root, capture_output=True, text=True)
    if run.returncode:
        raise RuntimeError(f"{path}: does not preprocess: {run.stderr.strip().splitlines()[:1]}")
    words = run.stdout.replace("\\\n", " ").split()[1:]
    return [w for w in words if w.endswith(".h")]


def scheme_names(root):
    """The schemes' files; what else is in core/schemes is a family helper."""
    listed = root / "core/schemes/list.h"
    return set(re.findall(r"SCHEME\((\w+)\)", listed.read_text())) if listed.exists() else set()


def check_scheme(path, names, schemes):
    """A scheme asks for scheme.h, attend.h and its family's header, never for another scheme."""
    for how, header in names:
        if how == "<":
            continue
        helper = pathlib.PurePath(header).stem
        if not (header in ("core/scheme.h", "core/attend.h") or (header.startswith("core/schemes/") and helper not in schemes)):
            yield f"{path}: includes {header}; a scheme may include core/scheme.h, core/attend.h and its family's header"


def check_own(path, text, schemes):
    """What a file's own lines may ask for."""
    layer = folder_of(path)
    system = LAYERS[layer][1]
    names = own_lines(text)
    for how, header in names:
        if how == "<" and header in DOORS:
            continue # judged by what is reached
        if how == "<" and system is not None and header not in C_LIBRARY | system:
            yield f"{path}: includes <{header}>; {layer}/ may include the C library only"
        if header in NO_CLOCK and layer != "server":
            yield f"{path}: includes <{header}>; {layer}/ reads no clock"
    if layer == "core/schemes" and path.endswith(".c"):
        yield from check_scheme(path, names, schemes)


def check_reached(path, headers):
    """What a file may reach through any number of headers."""
    layer = folder_of(path)
    for header in headers:
        door = next((d for d in DOORS if header == d or header.endswith("/" + d)), None)
        if door and not matches(path, DOORS[door]):
            yield f"{path}: reaches {door}; only {' and '.join(DOORS[door])} may"
        ours = not header.startswith("/")
        if ours and not door and not matches(header, LAYERS[layer][0]):
            yield f"{path}: reaches {header}; {layer}/ may see {', '.join(LAYERS[layer][0])}"


def check_includes(root, cc):
    schemes = scheme_names(root)
    for top in ("core", "api", "server"):
        for file in sorted((root / top).rglob("*.[ch]")):
            path = file.relative_to(root).as_posix()
            yield from check_own(path, file.read_text(), schemes)
            yield from check_reached(path, reached(root, cc, path))


def undefined(build, layer):
    """(object, symbol) for everything the objects of a layer leave to be linked."""
    files = sorted((build / "obj" / layer).rglob("*.o"))
    if not files:  # without a name, nm would read a.out
        return
    for line in subprocess.run(["nm", "-A", "-u", *files], capture_output=True, text=True, check=True).stdout.splitlines():
        file, symbol = line.split(":", 1)
        yield pathlib.Path(file).relative_to(build / "obj").as_posix(), symbol.split()[-1].split("@")[0]


def check_calls(root, build):
    for layer, pattern in FORBIDDEN_CALLS.items():
        doors = {"core/numeric/gemm.o"}
        for obj, symbol in undefined(build, layer):
            source = root / re.sub(r"(\.(base|avx2|avx512))?\.o$", ".c", obj)
            if obj not in doors and source.exists() and re.fullmatch(pattern, symbol):
                yield f"{obj}: calls {symbol}, which {layer}/ may not"


if __name__ == "__main__":
    checker.main(lambda arguments: check_calls(arguments.root, arguments.build) if arguments.calls else check_includes(arguments.root, arguments.cc))
