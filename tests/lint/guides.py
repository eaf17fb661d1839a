"""Every folder has a guide: a README.md of at most forty lines, or a mention in the guide of the folder above it
(tests/ names the folders that only mirror others). Prints what is missing; status 1 if anything is."""
import checker

LINES_MAX = 40
SKIPPED = {"build", "__pycache__", "fixtures"}
SOURCES = {".c", ".h", ".py", ".sh", ".json", ".yaml", ".conf", ".service"}


def folders(root):
    for path in sorted(p for p in root.rglob("*") if p.is_dir()):
        parts = path.relative_to(root).parts
        if not any(p in SKIPPED or p.startswith(".") for p in parts):
            yield path


def named_above(path, root):
    """Whether a guide above this folder describes it, as in `slow/` or `golden/rope/`."""
    for above in path.parents:
        guide = above / "README.md"
        if above != root and guide.exists() and f"`{path.relative_to(above).parts[0]}/`" in guide.read_text():
            return True
        if above == root:
            return False
    return False


def problems(root):
    for path in folders(root):
        guide = path / "README.md"
        name = path.relative_to(root).as_posix()
        if guide.exists():
            n = len(guide.read_text().splitlines())
            if n > LINES_MAX:
                yield f"{name}/README.md has {n} lines; allowed: {LINES_MAX}"
        elif any(f.suffix in SOURCES for f in path.iterdir()) and not named_above(path, root):
            yield f"{name}/ has no README.md, and no guide above names it"


if __name__ == "__main__":
    checker.main(lambda arguments: problems(arguments.root))
