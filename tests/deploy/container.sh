#!/bin/bash
# The Dockerfile built and run for real: with Docker if its engine answers, else as root with podman, runc and a base image that
# debootstrap makes, since Debian's packages need neither an engine nor an image registry.
#
#   container.sh able              status 0, or one sentence that says what is missing
#   container.sh build             the stage run, as posenc-scale; up to five minutes, less if nothing has changed
#   container.sh engine ARGUMENT…  docker or podman, with what this machine needs
set -euo pipefail
cd "$(dirname "$0")/../.."
packages="podman runc debootstrap catatonit netavark"
base=docker.io/library/debian:12-slim
image=localhost/posenc-scale

engine() {
    if has_docker; then
        docker "$@"
        return
    fi
    # The limits of this shell: podman asks for higher ones, which need CAP_SYS_RESOURCE. runc: crun refuses cgroups v1 beside v2.
    settings=$(mktemp)
    printf '[engine]\nruntime = "runc"\n[containers]\ndefault_ulimits = ["nofile=%s:%s", "nproc=4096:4096"]\n' \
        "$(most_files)" "$(most_files)" >"$settings"
    status=0
    CONTAINERS_CONF=$settings podman "$@" || status=$?
    rm -f "$settings"
    return $status
}

most_files() {
    most=$(ulimit -Hn)
    [ "$most" != unlimited ] && [ "$most" -lt 4096 ] && echo "$most" || echo 4096
}

has_docker() { command -v docker >/dev/null && docker info >/dev/null 2>&1; }

able() {
    has_docker && return
    [ "$(id -u)" = 0 ] || { echo "no container is built: there is no Docker engine here, and podman needs root"; return 1; }
    for program in podman runc debootstrap; do
        PATH=$PATH:/usr/sbin command -v $program >/dev/null && continue
        echo "no container is built: $program is missing; apt-get install -y --no-install-recommends $packages (about 60 MB, starts nothing)"
        return 1
    done
    engine image exists $base && return
    # As apt downloads, with its proxies.
    there=$(mktemp -d)
    /usr/lib/apt/apt-helper download-file "$(mirror)/dists/bookworm/Release" "$there/Release" >/dev/null 2>&1 && rm -rf "$there" && return
    rm -rf "$there"
    echo "no container is built: Debian's packages cannot be reached ($(mirror))"
    return 1
}

mirror() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | grep -Ev '^ *#|security' | grep -oE 'https?://[^ ]+' | head -1
}

make_base() {
    engine image exists $base && return
    root=$(mktemp -d /var/tmp/posenc-base.XXXXXX)
    # shellcheck disable=SC2064 # this folder, not a later one
    trap "rm -rf --one-file-system $root" EXIT
    debootstrap --variant=minbase bookworm "$root" "$(mirror)" >"$root.log" || { tail -5 "$root.log" >&2; exit 1; }
    rm -f "$root.log"
    for file in /etc/apt/apt.conf.d/*; do # a proxy of this machine's is needed there too
        if grep -qsi proxy "$file"; then cp "$file" "$root/etc/apt/apt.conf.d/"; fi
    done
    tar -C "$root" --one-file-system -cf - . | engine import -q - $base
}

build() {
    arguments=(--network host --build-arg "COMMIT=$(git describe --always --dirty 2>/dev/null || echo unknown)" --target run -t $image)
    if ! has_docker; then
        make_base
        # OCI's own format has no HEALTHCHECK.
        arguments+=(--format docker --pull=never)
    fi
    engine build "${arguments[@]}" .
}

case ${1-} in
able) able ;;
build) build ;;
engine) shift && engine "$@" ;;
*) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 2 ;;
esac
