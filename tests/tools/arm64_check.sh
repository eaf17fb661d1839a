#!/bin/sh
# Builds the core for arm64, runs it under emulation, and compares its bytes with this machine's. Needs Debian's
# gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static; run from the repository's root.
set -eu
BUILD=${BUILD:-build}
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do
    command -v $tool >/dev/null || {
        echo "arm64_check: $tool is missing: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static" >&2
        exit 1
    }
done
mkdir -p "$BUILD/arm64"
# gemm.c is left out: nothing here multiplies matrices, and Debian has no OpenBLAS to cross-link with. A stub that aborts
# replaces it.
sources=$(ls core/*.c core/schemes/*.c core/models/*.c core/attention/*.c core/kernels/*.c | grep -v core/numeric/gemm.c)
{
    echo '#include <stdlib.h>'
    grep -oE '\bpe_gemm_[a-z0-9_]+\(' core/numeric/gemm.h | sort -u | sed 's/(/;/;s/;.*//' | while read -r name; do
        echo "void $name(void); void $name(void) { abort(); }"
    done
} >"$BUILD/arm64/gemm.c"
aarch64-linux-gnu-gcc -std=gnu11 -I. -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math -Wall -Wextra -Werror \
    -DPE_ISA_SUFFIX=base -static tests/tools/table_hashes.c "$BUILD/arm64/gemm.c" $sources -lm -o "$BUILD/arm64/table_hashes"
qemu-aarch64-static "$BUILD/arm64/table_hashes" >"$BUILD/arm64/there.txt"
"$BUILD/tests/tools/table_hashes" >"$BUILD/arm64/here.txt"
if cmp "$BUILD/arm64/here.txt" "$BUILD/arm64/there.txt"; then
    echo "$(wc -l <"$BUILD/arm64/here.txt") passed, 0 failed"
else
    diff "$BUILD/arm64/here.txt" "$BUILD/arm64/there.txt" || true
    exit 1
fi
