"""Puts text between markers of a Markdown file, or checks that it stands there.

    splice.py check|write DOCUMENT.md NAME=FILE …
"""
import pathlib
import re
import sys


def splice(document, name, text):
    """document with text between `<!-- name:begin -->` and `<!-- name:end -->`."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    if document.count(begin) != 1 or document.count(end) != 1:
        sys.exit(f"splice: the markers of {name} must stand in the document once each")
    return re.sub(f"{re.escape(begin)}.*?{re.escape(end)}", lambda _: f"{begin}\n{text.rstrip()}\n{end}", document, flags=re.S)


def main():
    mode, target, *parts = sys.argv[1:]
    path = pathlib.Path(target)
    before = path.read_text()
    after = before
    for part in parts:
        name, file = part.split("=", 1)
        after = splice(after, name, pathlib.Path(file).read_text())
    if mode == "write":
        if after != before:
            path.write_text(after)
            print(f"{target}: renewed")
    elif after != before:
        sys.exit(f"{target}: its generated parts are out of date; run `make docs`")


if __name__ == "__main__":
    main()
