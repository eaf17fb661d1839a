#!/bin/sh
# The Dockerfile's steps in a fresh Debian 12 (debootstrap, root), for machines without a Docker engine: RUN lines of the
# stages build and check, then the run stage's packages with the built server in a second fresh system, which must serve.
#   tests/tools/bootstrap_check.sh [FOLDER]     FOLDER (default: a temporary one, removed at the end) keeps the systems
#   MIRROR=http://deb.debian.org/debian         where packages come from
set -eu

cd "$(dirname "$0")/../.."
mirror=${MIRROR:-http://deb.debian.org/debian}
keep=${1-}
folder=${keep:-$(mktemp -d /var/tmp/posenc-bootstrap.XXXXXX)}
build=$folder/build run=$folder/run
[ "$(id -u)" = 0 ] || { echo "bootstrap_check: must be root" >&2; exit 1; }

# Only /proc is mounted into the systems (their /dev is their own), and nothing is removed while it is mounted.
finish() {
    umount "$build/proc" 2>/dev/null || true
    umount "$run/proc" 2>/dev/null || true
    [ -n "$keep" ] || rm -rf --one-file-system "$folder"
}
trap finish EXIT

fresh() { # a system like debian:12-slim
    [ -e "$1/etc/debian_version" ] || debootstrap --variant=minbase bookworm "$1" "$mirror" >"$folder/debootstrap.log"
    printf 'deb %s bookworm main\n' "$mirror" >"$1/etc/apt/sources.list"
    cp /etc/resolv.conf "$1/etc/resolv.conf"
    for proxy in /etc/apt/apt.conf.d/*; do # a proxy of this machine's is needed there too
        grep -qsi 'proxy' "$proxy" && cp "$proxy" "$1/etc/apt/apt.conf.d/"
    done
    mountpoint -q "$1/proc" || mount -t proc proc "$1/proc"
}

# The commands of a stage's RUN lines, continuation lines joined.
stage_commands() {
    awk -v stage="$1" '
        /^FROM/ { inside = ($NF == stage) }
        inside { line = line $0; if (sub(/\\$/, "", line)) next; if (sub(/^RUN /, "", line)) print line; line = "" }
    ' Dockerfile
}

# Runs a stage's commands one after the other in a system, in /src like the Dockerfile.
run_stage() {
    stage_commands "$1" >"$2/stage.sh"
    echo "== stage $1"
    chroot "$2" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive COMMIT=bootstrap \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        sh -eux -c 'cd "$0" && . /stage.sh' "$3"
}

mkdir -p "$folder"
fresh "$build"
mkdir -p "$build/src"
# COPY . . : the files that git tracks or would add, without build results.
git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c '[ ! -e "$1" ] || printf "%s\0" "$1"' _ {} |
    tar --null -T - -cf - | tar -C "$build/src" -xf -
run_stage build "$build" /src
run_stage check "$build" /src

fresh "$run"
run_stage run "$run" /
cp "$build/out/usr/local/bin/posencd" "$run/usr/local/bin/"
echo "== the server of the image"
chroot "$run" su -s /bin/sh posenc -c 'exec posencd --host 127.0.0.1 --port 18080' &
server=$!
sleep 2
answer=$(curl -sS --max-time 10 -d '{"scheme":"rope","len":2,"head_dim":4}' http://127.0.0.1:18080/encode || true)
kill "$(pgrep -P $server posencd || echo $server)"
wait $server || true
case $answer in
*'"data":[[0.0,0.0],[0.84147096,0.009999833]]'*) echo "the image's server answers; all stages passed" ;;
*) echo "bootstrap_check: the image's server answered: $answer" >&2; exit 1 ;;
esac
