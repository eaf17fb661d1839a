#!/bin/sh
# All checks of `make lint`. Arguments: the C files whose format is checked. Prints the violations, then a count.
set -u
BUILD=${BUILD:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
CC=${CC:-gcc}
passed=0 failed=0

check() { # name command…
    name=$1
    shift
    if "$@"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "lint: $name: failed"
    fi
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
check "texts in two languages" "$PYTHON" tests/lint/texts.py
check "look" looks_right "$@"
check "generated text" env BUILD="$BUILD" tests/lint/generated.sh check
check "folder guides" "$PYTHON" tests/lint/guides.py
check "shell scripts" scripts_parse
check "Python" python_parses

echo "$passed checks passed, $failed failed"
[ "$failed" -eq 0 ]
