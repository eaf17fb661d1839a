"""Writes a wheel that needs NumPy and the machine's OpenBLAS, jansson, libyaml, libpng and zlib: posenc.py, its pytest plugin and
libposenc beside them.

    python3 server/clients/wheel.py MODULE LIBRARY FOLDER

MODULE is posenc.py with its version in it. The same files give the same bytes.
"""
import base64
import hashlib
import pathlib
import platform
import re
import sys
import zipfile

METADATA = """Metadata-Version: 2.1
Name: posenc
Version: {version}
Summary: positional encodings of Transformer models, computed exactly; diagnoses of ports in tests
Requires-Python: >=3.8
Requires-Dist: numpy
"""
WHEEL = "Wheel-Version: 1.0\nGenerator: posenc\nRoot-Is-Purelib: false\nTag: {tag}\n"
ENTRY_POINTS = "[pytest11]\nposenc = posenc_pytest\n"


def wheel(module, library, folder):
    code = module.read_text()
    version, tag = re.search(r'^__version__ = "(.*)"', code, re.M)[1], f"py3-none-linux_{platform.machine()}"
    about = f"posenc-{version}.dist-info"
    files = {"posenc.py": code.encode(), "posenc_pytest.py": pathlib.Path(__file__).with_name("posenc_pytest.py").read_bytes(),
             "libposenc.so.0": library.read_bytes(), f"{about}/METADATA": METADATA.format(version=version).encode(),
             f"{about}/WHEEL": WHEEL.format(tag=tag).encode(), f"{about}/entry_points.txt": ENTRY_POINTS.encode()}
    digests = {name: base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode() for name, content in files.items()}
    record = "".join(f"{name},sha256={digests[name]},{len(files[name])}\n" for name in files) + f"{about}/RECORD,,\n"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"posenc-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, f"{about}/RECORD": record.encode()}.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr, entry.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return path


if __name__ == "__main__":
    print(wheel(*map(pathlib.Path, sys.argv[1:])))
