#!/bin/sh
# All checks of `make lint`. Arguments: the C files whose format is checked. Prints the violations, then a count.
set -u
BUILD=${BUILD:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
CC=${CC:-gcc}
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
checks=0

# Begins a check. All run side by side, because none needs another and most start many small programs.
check() { # name command…
    checks=$((checks + 1))
    echo "$1" >"$logs/$checks.name"
    shift
    "$@" >"$logs/$checks.out" 2>&1 &
    echo $! >"$logs/$checks.pid"
}

# Prints what each check said, in the order in which they were begun; then the count.
report() {
    passed=0 failed=0 number=0
    while [ $number -lt $checks ]; do
        number=$((number + 1))
        if wait "$(cat "$logs/$number.pid")"; then
            passed=$((passed + 1))
        else
            failed=$((failed + 1))
            echo "lint: $(cat "$logs/$number.name"): failed" >>"$logs/$number.out"
        fi
        cat "$logs/$number.out"
    done
    echo "$passed checks passed, $failed failed"
    [ "$failed" -eq 0 ]
}

scripts_parse() {
    status=0
    for script in $(find . -path ./build -prune -o -name '*.sh' -print) .ci/run; do
        case $(head -1 "$script") in
        *bash*) bash -n "$script" || status=1 ;;
        *) sh -n "$script" || status=1 ;;
        esac
    done
    return $status
}

python_parses() {
    find tests -name '*.py' -print0 | xargs -0 "$PYTHON" -c '
import ast, sys
for name in sys.argv[1:]:
    ast.parse(open(name).read(), name)'
}

looks_right() {
    # One line per place; the first dozen suffice.
    clang-format --dry-run -Werror "$@" 2>"$BUILD"/format.txt && return 0
    grep -E 'error:' "$BUILD"/format.txt | head -12
    echo "$(grep -c 'error:' "$BUILD"/format.txt) places; make format settles them"
    return 1
}

check "the checker can fail" "$PYTHON" tests/lint/selftest.py
check "layers, includes" "$PYTHON" tests/lint/layers.py --cc "$CC"
check "layers, calls" "$PYTHON" tests/lint/layers.py --calls --build "$BUILD"
check "rooms, calls" "$PYTHON" tests/lint/rooms.py --build "$BUILD"
check "what the shared library exports" "$PYTHON" tests/lint/abi.py --build "$BUILD" --cc "$CC" --abi "${ABI:-0}"
check "texts in two languages" "$PYTHON" tests/lint/texts.py
check "words of comments, guides and texts" "$PYTHON" tests/lint/words.py
check "files and rulers of comments" "$PYTHON" tests/lint/comments.py
check "sizes" "$PYTHON" tests/lint/sizes.py
check "look" looks_right "$@"
check "generated text" env BUILD="$BUILD" tests/lint/generated.sh check
check "powers of ten" "$PYTHON" tests/tools/powers_of_ten.py "$BUILD"/gen/api/numbers/powers_rows.c
check "faults that other files name" "$PYTHON" tests/lint/faults.py
check "names of tests and rows in guides" "$PYTHON" tests/lint/named.py
check "folder guides" "$PYTHON" tests/lint/guides.py
check "shell scripts" scripts_parse
check "Python" python_parses

report
