"""Holds that no file but that of its row refers to a fault of a diagnosis by its C name: others find it by what its row states.

    python3 tests/lint/faults.py [--root .]

core/diagnosis/faults/list.h names them all, and the table is built from it. Prints one line per violation; status 1 if there is one.
"""
import re

import checker

LIST = "core/diagnosis/faults/list.h"


def rows(text):
    """The faults whose rows are in a file, also those of a macro of this file that builds a row."""
    makers = re.findall(r"#define (\w+)\((?:\w+, )*\w+\)(?:.*\\\n)*?.*const struct pe_fault pe_fault_##", text)
    made = [name for maker in makers for name in re.findall(rf"^{maker}\((\w+),", text, re.M)]
    return set(re.findall(r"^const struct pe_fault pe_fault_(\w+) =", text, re.M)) | set(made)


def problems(root):
    path = root / LIST
    faults = set(re.findall(r"^FAULT\((\w+)\)", path.read_text(), re.M)) if path.exists() else set()
    for source in sorted(root.glob("core/**/*.[ch]")):
        text = source.read_text()
        own = rows(text)
        for number, line in enumerate(text.splitlines(), 1):
            for name in re.findall(r"\bpe_fault_(\w+)", line):
                if name in faults - own:
                    yield f"{source.relative_to(root)}:{number}: names pe_fault_{name}, whose row is in another file"


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root))
