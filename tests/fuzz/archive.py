"""The committed inputs of a fuzz target: one archive, corpus/NAME.tar.gz, which tar unpacks too.

    python3 tests/fuzz/archive.py list NAME            names and sizes
    python3 tests/fuzz/archive.py unpack NAME FOLDER   one file for each input
    python3 tests/fuzz/archive.py pack NAME FOLDER     the files of a folder become the archive
    python3 tests/fuzz/archive.py add NAME FILE...     adds files; those named with words stay for good

The same inputs give the same bytes: names in order, no times, no owners. An archive whose inputs did not change is not
written again, because another zlib may compress to other bytes.
"""
import gzip
import io
import pathlib
import sys
import tarfile

CORPUS = pathlib.Path(__file__).resolve().parent / "corpus"


def path_of(name):
    return CORPUS / f"{name}.tar.gz"


def read(path):
    """Name and bytes of every input; none where there is no archive."""
    if not path.exists():
        return {}
    with tarfile.open(path, "r:gz") as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}


def packed(inputs):
    """The archive's bytes."""
    out = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=out, mtime=0) as squeezed, \
            tarfile.open(fileobj=squeezed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(inputs):
            member = tarfile.TarInfo(name)  # mode 644, time 0, owner 0 and no names
            member.size = len(inputs[name])
            tar.addfile(member, io.BytesIO(inputs[name]))
    return out.getvalue()


def write(path, inputs):
    """Whether the archive had to change."""
    if path.exists() and read(path) == inputs:
        return False
    path.write_bytes(packed(inputs))
    return True


def from_folder(folder):
    return {p.name: p.read_bytes() for p in pathlib.Path(folder).iterdir() if p.is_file()}


def to_folder(inputs, folder):
    """The folder then holds these inputs and nothing else."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in inputs:
            path.unlink()
    for name, data in inputs.items():
        (folder / name).write_bytes(data)


def main(verb, name, *paths):
    inputs = read(path_of(name))
    if verb == "list":
        print("".join(f"{len(data):>7} {key}\n" for key, data in sorted(inputs.items())), end="")
    elif verb == "unpack":
        to_folder(inputs, pathlib.Path(paths[0]))
    elif verb == "pack":
        write(path_of(name), from_folder(paths[0]))
    elif verb == "add":
        write(path_of(name), inputs | {pathlib.Path(p).name: pathlib.Path(p).read_bytes() for p in paths})
    else:
        sys.exit(f"unknown verb {verb}; there are list, unpack, pack, add")


if __name__ == "__main__":
    if len(sys.argv) < 3 or (len(sys.argv) < 4 and sys.argv[1] != "list"):
        sys.exit(__doc__)
    main(*sys.argv[1:])
