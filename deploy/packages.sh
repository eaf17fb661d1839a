#!/bin/sh
# What posenc needs from the system.
#   packages.sh check           stops with one sentence if a library to build with is missing
#   packages.sh install build   installs what building needs and is not there (Debian), else checks
#   packages.sh install deb     the same, and what makes Debian packages; `check deb` stops if that is missing
#   packages.sh install test    the same, and what the tests need; a sentence, no failure, where there is no browser to install
#   packages.sh install arm64   what compiles the core for arm64 and runs it; a sentence, no failure, where it cannot
#   packages.sh install asan    what tests need, and the sanitizers of clang
#   packages.sh install scale   what builds and runs the container image where Docker is not; a sentence, no failure, where it cannot
#   packages.sh unpack DIR      puts programs that only tests start into DIR: promtool and Prometheus, which read
#                               /metrics, nginx, HAProxy and Varnish, which balance servers and keep
#                               answers; a sentence, no failure, where it cannot
# Touches neither the network nor anything else when all is there.
set -eu

build_packages="gcc libc6-dev make pkg-config libmicrohttpd-dev libuv1-dev libjansson-dev libyaml-dev libpng-dev zlib1g-dev
    nettle-dev libgnutls28-dev libcurl4-gnutls-dev libopenblas-dev esbuild"
test_packages="$build_packages gettext clang clang-format libcmocka-dev python3 python3-pytest python3-pytest-xdist
    python3-numpy python3-mpmath python3-yaml
    python3-hypothesis python3-jsonschema python3-zarr python3-dask python3-distributed python3-xarray
    curl unzip pngcheck"
deb_packages="$build_packages build-essential debhelper lintian"
asan_packages="$test_packages libclang-rt-14-dev" # the sanitizers of clang
container_packages="podman runc debootstrap catatonit netavark" # start nothing when installed
arm64_packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static"
browser_packages="chromium chromium-driver python3-selenium"
browser_shell="chromium-headless-shell" # the same browser without a window's frame: the tests take a third less time
libraries="libmicrohttpd libuv libcurl jansson yaml-0.1 libpng zlib nettle gnutls openblas"

fail() {
    echo "posenc: $*" >&2
    exit 1
}

check_deb() {
    check
    for program in dpkg-buildpackage dh; do
        command -v $program >/dev/null || fail "$program is missing; on Debian: deploy/packages.sh install deb"
    done
}

check() {
    command -v pkg-config >/dev/null ||
        fail "pkg-config is missing; 'make run' installs it on Debian, elsewhere use your package manager"
    command -v awk >/dev/null || fail "awk is missing, which makes tables of texts and models; install it (Debian: mawk)"
    command -v esbuild >/dev/null || fail "esbuild is missing, which shortens the scripts of the page; install it (Debian: esbuild)"
    pkg-config --exists $libraries && return
    for library in $libraries; do
        pkg-config --exists "$library" || missing="${missing:-}${missing:+, }$library"
    done
    fail "missing development files of: $missing; 'make run' installs them on Debian, elsewhere use your package manager"
}

# The packages of a list that are not installed.
absent() {
    for package in "$@"; do
        [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
    done
}

# One query for all; the names one by one only if that finds fewer than asked for.
missing_of() {
    found=$(dpkg-query -W -f '${db:Status-Status}\n' "$@" 2>/dev/null | grep -c '^installed' || true)
    [ "$found" -ge $# ] || absent "$@"
}

# As root. The lists of a fresh system are empty, those of an old one out of date: refresh them when the
# first try fails.
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
apt_install() { as_root $1 || { as_root apt-get update && as_root $1; }; }
may_install() { [ "$(id -u)" = 0 ] || command -v sudo >/dev/null; }

# Installs what is missing of the packages $1, which are $3; $2: what follows where that fails.
install_if_possible() {
    missing=$(missing_of $1 | tr '\n' ' ')
    missing=${missing% }
    [ -n "$missing" ] || return 0
    command="apt-get install -y --no-install-recommends $missing"
    echo "posenc: installing $3: $missing"
    may_install && apt_install "$command" || echo "posenc: $missing could not be installed, so $2; as root run: $command"
}

install_browser() {
    install_if_possible "$browser_packages" "the tests of the web page will be skipped" "the browser for the tests of the web page"
    install_if_possible "$browser_shell" "the tests of the web page will take longer" "the browser for the tests of the web page"
}

install_containers() {
    docker info >/dev/null 2>&1 || ! command -v apt-get >/dev/null ||
        install_if_possible "$container_packages" "no container image will be built" "what runs the container image"
}

install_arm64() {
    ! command -v apt-get >/dev/null ||
        install_if_possible "$arm64_packages" "nothing is compared with arm64" "what compiles and runs the core for arm64"
}

install() {
    case $1 in
    build) packages=$build_packages why="to build" ;;
    test) packages=$test_packages why="to build and test" ;;
    deb) packages=$deb_packages why="to make Debian packages" ;;
    asan) packages=$asan_packages why="to test with sanitizers" ;;
    *) fail "install what? build, test, deb, asan, arm64 or scale" ;;
    esac
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        check
        return
    fi
    missing=$(missing_of $packages | tr '\n' ' ')
    missing=${missing% }
    [ -n "$missing" ] || return 0
    command="apt-get install -y --no-install-recommends $missing"
    may_install || fail "needed $why and missing: $missing; as root run: $command"
    echo "posenc: installing what is needed $why: $missing"
    apt_install "$command" || fail "apt-get could not install: $missing"
}

# fetch DIR PROGRAM PACKAGE... SENTENCE: only files. Debian's packages of these would start servers when installed.
fetch() {
    into=$1 program=$2
    shift 2
    [ ! -x "$into/$program" ] && ! PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || return 0
    command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || { echo "posenc: no $program here"; return 0; }
    fetched=$(mktemp -d)
    chmod 755 "$fetched"
    mkdir -p "$into/lib"
    while [ $# -gt 1 ]; do
        (cd "$fetched" && apt-get download "$1" >/dev/null 2>&1 && dpkg-deb -x "$1"_*.deb .) || true
        shift
    done
    find "$fetched/usr" -name 'lib*.so*' -exec mv {} "$into/lib/" \; 2>/dev/null || true
    mv "$fetched/usr/bin/$program" "$into/" 2>/dev/null || mv "$fetched/usr/sbin/$program" "$into/" 2>/dev/null ||
        echo "posenc: $program could not be fetched; $1"
    rm -rf "$fetched"
}

unpack() {
    fetch "$1" promtool prometheus "/metrics is checked by our own rules only"
    fetch "$1" prometheus prometheus "no dashboard is asked"
    fetch "$1" nginx nginx "nothing is smuggled through it"
    fetch "$1" varnishd varnish libvarnishapi3 libjemalloc2 "its cache is not tested"
    fetch "$1" haproxy haproxy liblua5.3-0 libopentracing-c-wrapper0 libopentracing1 "nothing is smuggled through it"
}

case ${1-} in
check) if [ "${2-}" = deb ]; then check_deb; else check; fi ;;
unpack) unpack "${2-build/tools}" ;;
install)
    export DEBIAN_FRONTEND=noninteractive
    case ${2-} in
    scale) install_containers ;;
    arm64) install_arm64 ;;
    test)
        install test
        ! command -v apt-get >/dev/null || install_browser
        ;;
    *) install "${2-}" ;;
    esac
    ;;
*) fail "usage: packages.sh check [deb] | install build | install test | install deb | install asan | install arm64 | install scale | unpack DIR" ;;
esac
