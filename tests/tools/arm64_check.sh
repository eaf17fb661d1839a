#!/bin/sh
# Builds the core for this machine and for arm64, runs the second under emulation, and compares their bytes. Needs Debian's
# gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user-static (deploy/packages.sh install arm64); where they are missing, says
# so and ends with status 77. Run from the repository's root.
set -eu
BUILD=${BUILD:-build}
for tool in aarch64-linux-gnu-gcc qemu-aarch64-static; do
    command -v $tool >/dev/null || {
        echo "not run, because $tool is not installed: the comparison with arm64"
        exit 77
    }
done
there=$BUILD/arm64
make --no-print-directory -j"$(nproc)" BUILD="$BUILD" "$BUILD/hashes"
make --no-print-directory -j"$(nproc)" BUILD="$there" CC=aarch64-linux-gnu-gcc "$there/hashes"
"$BUILD/hashes" | sort >"$there/here.txt"
shares=$(nproc) running=
for share in $(seq 0 $((shares - 1))); do
    qemu-aarch64-static "$there/hashes" "$share" "$shares" >"$there/there.$share" &
    running="$running $!"
done
for share in $running; do wait "$share"; done
sort "$there"/there.[0-9]* >"$there/there.txt"
rm "$there"/there.[0-9]*
diff "$there/here.txt" "$there/there.txt" >"$there/diff.txt" || cat "$there/diff.txt"
total=$(wc -l <"$there/here.txt") different=$(grep -c '^<' "$there/diff.txt" || true) more=$(grep -c '^>' "$there/diff.txt" || true)
[ "$more" -le "$different" ] || different=$more
echo "$((total > different ? total - different : 0)) passed, $different failed"
[ "$total" -gt 0 ] && [ "$different" -eq 0 ]
