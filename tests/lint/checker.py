"""What every checker does with its arguments and with what it finds: a line for each violation; status 1 if there is one."""
import argparse
import pathlib
import sys


def main(problems):
    """problems(arguments) gives sentences."""
    parser = argparse.ArgumentParser()
    for name, default in ("--root", pathlib.Path(".")), ("--build", pathlib.Path("build")), ("--cc", "gcc"), ("--abi", "0"):
        parser.add_argument(name, type=type(default), default=default)
    parser.add_argument("--calls", action="store_true")
    wrong = list(dict.fromkeys(problems(parser.parse_args())))
    print("\n".join(wrong), end="\n" if wrong else "")
    sys.exit(1 if wrong else 0)
