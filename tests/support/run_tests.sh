#!/bin/sh
# Runs the given kinds of tests; each runner prints its own summary, then one line of totals follows. Status 1 if anything failed.
#   BUILD=build run_tests.sh [lint] [c] [replay] [http] [brief] [page] [arm64] [slow]
# T=test_rotate.py runs one file of the http or page tests; ONE=alibi the programs in C, the tests over a socket and those of the page
# whose names have this word. PYTEST_FLAGS go to pytest. KERNELS=base, avx2 or avx512: with these kernels, in C (tests/support/kernels.c) and in servers (tests/http/conftest.py).
set -u

BUILD=${BUILD:-build}
PYTHON=${PYTHON:-/usr/bin/python3}
export KERNELS=${KERNELS-}
# The order of Python's sets is the same in every run.
export PYTHONHASHSEED=0
# Tests are compiled once, not by each process that collects them.
export PYTHONPYCACHEPREFIX=$PWD/build/pycache
unset PYTHONDONTWRITEBYTECODE
passed=0 failed=0 skipped=0 unable=0
failures=
log=$(mktemp)
logs=$(mktemp -d)
trap 'rm -rf "$log" "$logs"' EXIT

# The sum of the numbers before or after a text in a log, as in "[  PASSED  ] 3 test(s)." or "12 passed".
sum() { # pattern [log]
    grep -oE "$1" "${2:-$log}" | grep -oE '[0-9]+' | awk '{ n += $1 } END { print n + 0 }'
}

# Runs a command into the log and onto the screen; its status is the command's.
run() {
    { "$@" 2>&1; echo $? >"$log.rc"; } | tee "$log"
    rc=$(cat "$log.rc")
    rm -f "$log.rc"
    return "$rc"
}

add() { # passed failed name status
    passed=$((passed + $1))
    failed=$((failed + $2))
    if [ "$4" -ne 0 ] || [ "$2" -gt 0 ]; then
        [ "$2" -gt 0 ] || failed=$((failed + 1)) # it crashed, or failed before its first test
        failures="$failures $3"
    fi
}

run_lint() {
    echo "== lint"
    run make --no-print-directory lint BUILD="$BUILD"
    status=$?
    add "$(sum '^[0-9]+ checks passed')" "$(sum ', [0-9]+ failed')" lint $status
}

# These compare times; all other tests in C run side by side, as many as there are processors.
measured_c='core/request/test_cost server/loop/test_jobs'

# Runs programs, so many at a time, and prints what each said as it ends. A program that left no status did not end by itself.
run_programs() { # at_a_time program…
    at_a_time=$1
    shift
    printf '%s\n' "$@" | xargs -P "$at_a_time" -I '{}' sh -c '
        mkdir -p "$2/$1" && "$1" >"$2/$1/log" 2>&1
        echo $? >"$2/$1/status"
        echo "$1"' sh '{}' "$logs" | while read -r program; do
        echo "== $program"
        cat "$logs/$program/log"
    done
    for program; do
        said=$logs/$program/log
        add "$(sum '\[  PASSED  \] [0-9]+' "$said")" "$(sum '\[  FAILED  \] [0-9]+ test' "$said")" "$program" \
            "$(cat "$logs/$program/status" || echo 1)"
    done
}

run_cmocka() {
    beside= alone=
    for program in $(find "$BUILD"/tests/core "$BUILD"/tests/api "$BUILD"/tests/server -type f -name 'test_*' 2>/dev/null | sort); do
        name=${program#"$BUILD"/tests/}
        [ -f "tests/$name.c" ] || continue # its source is gone
        case ${name##*/} in *"${ONE-}"*) ;; *) continue ;; esac
        case " $measured_c " in
        *" $name "*) alone="$alone $program" ;;
        *) beside="$beside $program" ;;
        esac
    done
    [ -z "$beside" ] || run_programs "$(nproc)" $beside
    [ -z "$alone" ] || run_programs 1 $alone
}

run_replay() {
    for program in "$BUILD"/tests/fuzz/fuzz_*.replay; do
        [ -f "$program" ] || continue
        name=${program##*/fuzz_} name=${name%.replay}
        echo "== fuzz corpus $name"
        run "$program" "$BUILD"/tests/fuzz/corpus/"$name"
        status=$?
        add $((status == 0)) 0 "$program" $status
    done
}

# pytest with additional arguments. Python's large blocks are taken in huge pages: where each page that is touched is a call of the
# hypervisor, tests over a socket take a quarter less of the kernel's time.
pytest() {
    GLIBC_TUNABLES=glibc.malloc.hugetlb=1 "$PYTHON" -m pytest -q -p no:cacheprovider -p no:logging --durations=10 --durations-min=1 ${PYTEST_FLAGS-} "$@"
}

count_pytest() { # status [log]
    status=$1
    [ -z "${ONE-}" ] || [ "$status" -ne 5 ] || status=0 # no test has the word
    add "$(sum '[0-9]+ passed' "${2:-$log}")" "$(($(sum '[0-9]+ failed' "${2:-$log}") + $(sum '[0-9]+ error' "${2:-$log}")))" pytest "$status"
    skipped=$((skipped + $(sum '[0-9]+ skipped' "${2:-$log}")))
}

run_pytest() {
    run pytest "$@"
    count_pytest $?
}

# Tests that measure nothing run in parallel (pytest-xdist), and beside them those that wait for a server's limits of time or judge by
# wide ones, which use little of the processors; the others alone after them, one after the other.
run_http() {
    echo "== tests over a socket"
    POSENCD=$(cd "$BUILD" && pwd)/posencd
    export POSENCD
    if [ -n "${ONE-}" ]; then
        run_pytest -n "${HTTP_JOBS:-4}" -k "$ONE" tests/http
        return
    fi
    if [ -n "${T-}" ] || [ -n "${PYTEST_FLAGS-}" ]; then
        files=$(find tests/http tests/deploy -name "${T:-http}")
        run_pytest ${files:-"tests/http/$T"} # which pytest says is not there
        return
    fi
    # The tools' own tests and those of the kept tensors go with the first part; they neither measure nor fuzz.
    { pytest --part=waiting -n 4 tests/http; echo $? >"$logs/waiting.status"; } >"$logs/waiting" 2>&1 &
    # A browser waits for its frames as often as it computes: with the page's tests beside these no processor is idle.
    [ -z "$page_beside" ] || { browse_unmeasured; echo $? >"$logs/page.status"; } >"$logs/page" 2>&1 &
    [ -z "${POSENC_SANITIZED-}" ] || wait # ten times slower, which is load enough
    # The first time they are collected once before, so that not every process compiles all of them.
    [ -d "$PYTHONPYCACHEPREFIX" ] || "$PYTHON" -m pytest -q -p no:cacheprovider --collect-only tests/http tests/field tests/bench tests/fuzz >"$log" || cat "$log"
    run_pytest --part=beside -n "${HTTP_JOBS:-4}" --dist loadgroup tests/http tests/field tests/bench tests/fuzz tests/deploy/test_install.py tests/deploy/test_command.py
    wait
    echo "== meanwhile, those that wait"
    cat "$logs/waiting"
    count_pytest "$(cat "$logs/waiting.status" || echo 1)" "$logs/waiting"
    run_pytest --part=alone tests/http
}

# Of the tests over a socket those that notice most mistakes in a minute or two: what every commit passes.
BRIEF='test_golden test_random test_attention_random test_formats test_server_life test_single_flight test_weights test_cases'
run_brief() {
    echo "== the brief tests over a socket"
    POSENCD=$(cd "$BUILD" && pwd)/posencd
    export POSENCD
    run_pytest -n "${HTTP_JOBS:-4}" --dist loadgroup $(for name in $BRIEF; do find tests/http -name "$name.py"; done)
}

# As with http: what measures runs alone.
measured_page='tests/page/test_speed.py tests/page/test_pace.py'
browse_unmeasured() {
    pytest -n "${PAGE_JOBS:-3}" --dist loadgroup $(printf -- '--ignore=%s ' $measured_page) tests/page
}

# The web page: modules without a browser in node, all else in chromium. What is not installed is named, its tests count as not run.
run_page() {
    echo "== the web page, its modules"
    modules=$(find tests/page -name "${T:-*${ONE-}*}.test.mjs" | sort)
    if ! node -e 'process.exit(+(process.versions.node.split(".")[0] < 18))' 2>/dev/null; then
        echo "not run, because node 18 or newer is not installed: $(echo $modules)"
        unable=$((unable + $(echo $modules | wc -w)))
    elif [ -n "$modules" ]; then
        run node --test --test-reporter=spec $modules
        status=$?
        add "$(sum '^(#|ℹ) pass [0-9]+')" "$(sum '^(#|ℹ) fail [0-9]+')" node $status
    fi
    echo "== the web page in a browser"
    POSENCD=$(cd "$BUILD" && pwd)/posencd
    export POSENCD
    if [ -n "${T-}" ] && [ ! -f "tests/page/$T" ]; then return; fi
    before=$skipped
    if [ -n "${ONE-}" ]; then
        run_pytest -k "$ONE" tests/page
    elif [ -n "${T-}" ]; then
        run_pytest "tests/page/$T"
    else
        if [ -n "$page_beside" ]; then
            cat "$logs/page"
            count_pytest "$(cat "$logs/page.status" || echo 1)" "$logs/page"
        else
            run browse_unmeasured
            count_pytest $?
        fi
        run_pytest $measured_page
    fi
    unable=$((unable + skipped - before)) skipped=$before
}

# The core's bytes on arm64, under emulation.
run_arm64() {
    echo "== the core on arm64"
    run env BUILD="$BUILD" tests/tools/arm64_check.sh
    status=$?
    if [ $status -eq 77 ]; then
        unable=$((unable + 1))
    else
        add "$(sum '^[0-9]+ passed')" "$(sum ', [0-9]+ failed')" arm64 $status
    fi
}

run_slow() {
    for source in tests/slow/*.c; do
        program=$BUILD/${source%.c}
        echo "== $program"
        run "$program"
        status=$?
        add "$(sum '[0-9]+ passed')" "$(sum '[0-9]+ failed')" "$program" $status
    done
    # The laws on examples that no run has drawn before, and other values at other places; those that fail are printed, and drawn again
    # by the same seed.
    seed=${SEED:-$(date +%s)}
    echo "== a tenth of all values at all places, by seed $seed"
    run env PLACES=10 SEED="$seed" "$BUILD"/tests/api/test_places
    status=$?
    add "$(sum '\[  PASSED  \] [0-9]+')" "$(sum '\[  FAILED  \] [0-9]+ test')" test_places $status
    echo "== laws on examples of seed $seed: make test-slow SEED=$seed repeats them"
    POSENCD=$(cd "$BUILD" && pwd)/posencd
    export POSENCD
    run_pytest -n "${HTTP_JOBS:-4}" --dist loadgroup -m hypothesis --hypothesis-profile=explore --hypothesis-seed="$seed" tests/http
    PYTEST_FLAGS='-m slow'
    run_http
    run_pytest tests/page
}

# Printed once here, not by every test. core/numeric/isa.c lists the requirements of each set.
check_kernels() {
    case $KERNELS in
    '' | base) needed= ;;
    avx2) needed='avx2 fma bmi2' ;;
    avx512) needed='avx2 fma bmi2 avx512f avx512dq avx512bw avx512vl avx512cd' ;;
    *) echo "run_tests.sh: KERNELS=$KERNELS; there are base, avx2, avx512" >&2; exit 2 ;;
    esac
    for flag in $needed; do
        grep -qw "$flag" /proc/cpuinfo && continue
        echo "run_tests.sh: this machine does not have the kernels $KERNELS (its processor lacks $flag); nothing was tested" >&2
        exit 2
    done
}

check_kernels
# With both kinds the page's tests that measure nothing run beside those over a socket, if all of both run.
page_beside=
case " $* " in *' http '*' page '*) [ -n "${ONE-}${T-}${PYTEST_FLAGS-}" ] || page_beside=1 ;; esac
times=
for kind in "$@"; do
    begun=$(date +%s)
    case $kind in
    lint) run_lint ;;
    c) run_cmocka ;;
    replay) run_replay ;;
    http) run_http ;;
    brief) run_brief ;;
    page) run_page ;;
    arm64) run_arm64 ;;
    slow) run_slow ;;
    *) echo "run_tests.sh: unknown kind $kind; there are lint, c, replay, http, brief, page, arm64, slow" >&2; exit 2 ;;
    esac
    times="$times${times:+, }$kind $(($(date +%s) - begun)) s"
done
echo "== time of each part: $times"

echo "== total: $passed passed, $failed failed$([ $skipped -eq 0 ] || echo ", $skipped left to make test-slow")$(
    [ $unable -eq 0 ] || echo ", $unable not run, as said above")"
[ -z "$failures" ] || { echo "failed:$failures"; exit 1; }
