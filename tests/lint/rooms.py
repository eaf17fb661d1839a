"""Holds the order of the rooms: code may call its own room and those below it, never one above, and no circle of calls is longer than
three files.

    python3 tests/lint/rooms.py [--build build] [--root .]

A room is a folder, or a few files at the top of a layer. Who calls whom comes from the symbols of the compiled objects, so function
pointers in tables count as calls of what they point to. Prints one line per violation; status 1 if there is one.
"""
import collections
import pathlib
import re
import subprocess

import checker

CIRCLE_MAX = 3

# Each layer's rooms, lowest first: folders or files (a file's own entry counts before its folder's), or "*": the files at the top that belong
# to no other room.
# The README of each layer shows its line (guides.py compares).
ROOMS = {
    "core": ["kernels/", "numeric/", "error.c cancel.c catalogue.c formula.c params.c params_print.c texts.c values.c", "waves/", "sequence/", "request/", "schemes/", "models/ tools/",
             "encode/", "rotate/", "attention/", "*", "analysis/", "diagnosis/", "golden/", "dialects/", "training/"],
    "api": ["arena.c operations.c", "numbers/", "text.c problem.c statuses.c", "json/", "inputs/", "formats/", "requests/", "replies/", "endpoints/",
            "oip/", "mcp/", "*"],
    "server": ["process/", "loop/", "memory/", "process/metrics.c", "auth/", "store/", "store/weights/", "page/", "transport/", "exchange/", "command/", "*"],
}


def line_of(layer):
    """The order as the layer's README shows it."""
    shown = ["the rest" if room == "*" else " ".join(f"`{word}`" for word in room.split()) for room in ROOMS[layer]]
    return "Rooms, lowest first: " + " → ".join(shown) + "."


def room_of(path):
    """(layer, rank, name) of a source file."""
    layer, *inner = pathlib.PurePath(path).parts
    rooms = ROOMS[layer]
    words = {word: rank for rank, room in enumerate(rooms) for word in room.split()}
    for n in range(len(inner), 0, -1): # the file, then its folder, then the folder above
        word = "/".join(inner[:n]) + ("" if n == len(inner) else "/")
        if word in words:
            return layer, words[word], word
    if len(inner) > 1:
        return layer, None, inner[0] + "/"
    return layer, rooms.index("*"), "the top"


def source_of(build, obj):
    """The C file of an object: kernels are compiled once for each instruction set."""
    return re.sub(r"(\.(base|avx2|avx512))?\.o$", ".c", obj.relative_to(build / "obj").as_posix())


def symbols(objects):
    """{object: (symbols it defines, symbols it wants)}; one nm for all of them, since starting it takes longer than its work."""
    found = {str(obj): (set(), set()) for obj in objects}
    if not found:
        return found
    for line in subprocess.run(["nm", "-A", *found], capture_output=True, text=True, check=True).stdout.splitlines():
        obj, line = line.split(":", 1)
        *_, kind, name = line.split()
        defined, wanted = found[obj]
        (wanted if kind in "Uw" else defined if kind in "TDRBVCW" else set()).add(name)
    return found


def calls(root, build, layer):
    """{file: {file it calls: symbols}} within a layer."""
    owner, wanted = {}, collections.defaultdict(set)
    sources = {str(obj): source_of(build, obj) for obj in sorted((build / "obj" / layer).rglob("*.o"))}
    for obj, (defines, wants) in symbols([obj for obj, source in sources.items() if (root / source).exists()]).items():
        source = sources[obj]
        owner.update(dict.fromkeys(defines, source))
        wanted[source] |= wants
    graph = {}
    for source, names in wanted.items():
        graph[source] = collections.defaultdict(set)
        for name in names:
            if owner.get(name, source) != source:
                graph[source][owner[name]].add(name)
    return graph


def upward(graph):
    for source, targets in sorted(graph.items()):
        for target, names in sorted(targets.items()):
            (_, mine, here), (_, theirs, there) = room_of(source), room_of(target)
            if None not in (mine, theirs) and theirs > mine:
                yield f"{source} ({here}) calls {', '.join(sorted(names))} of {target} ({there}), a room above it"


def unknown(graph):
    for source in sorted(graph):
        layer, rank, room = room_of(source)
        if rank is None:
            yield f"{source}: {layer}/{room} is no room; give it a place in ROOMS of tests/lint/rooms.py"


def reached(graph, start):
    """Every file that a file calls, itself or through others."""
    found, new = set(), {start}
    while new:
        found |= new
        new = {target for source in new for target in graph.get(source, ())} - found
    return found


def circles(graph):
    """Files of which each calls every other, itself or through others."""
    calls_of = {source: reached(graph, source) for source in graph}
    together = {frozenset(other for other in calls_of[source] if source in calls_of.get(other, ())) for source in graph}
    return [sorted(circle) for circle in together if len(circle) > 1]


def problems(root, build):
    for layer in ROOMS:
        graph = calls(root, build, layer)
        yield from unknown(graph)
        yield from upward(graph)
        for circle in circles(graph):
            if len(circle) > CIRCLE_MAX:
                yield f"{len(circle)} files call each other in a circle; allowed: {CIRCLE_MAX}: {' '.join(circle)}"
        guide = root / layer / "README.md"
        if guide.exists() and line_of(layer) not in " ".join(guide.read_text().split()):
            yield f"{layer}/README.md does not show the order of its rooms: {line_of(layer)}"


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root, arguments.build))
