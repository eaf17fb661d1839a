#!/bin/sh
# The packages of `make deb` in the root folder of a fresh Debian: installed, used, upgraded over a changed configuration, removed, purged.
# Needs root; nothing outside that folder changes.
#   debootstrap --variant=minbase bookworm /var/tmp/root && tests/deploy/packages_check.sh /var/tmp/root [build/deb]
set -eu
[ "${inside-}" ] || exec env inside=yes unshare --mount "$0" "$@"
root=$1 packages=${2:-build/deb}
mount --make-rprivate /
mount -t proc proc "$root/proc"
mkdir -p "$root/packages"
cp "$packages"/*.deb "$root/packages"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d" # starts no service
chmod 755 "$root/usr/sbin/policy-rc.d"
passed=0

in_root() { PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive chroot "$root" sh -c "$1"; }
check() { # sentence command
    in_root "$2" >"$root/log" 2>&1 || { tail -5 "$root/log"; echo "failed: $1"; exit 1; }
    passed=$((passed + 1))
}

list='find /etc /usr /var -xdev \( -path /var/lib/dpkg -o -path /var/log -o -path /var/cache -o -path /var/lib/apt \) -prune -o -type f -print | sort'
in_root "apt-get update -qq; $list >/before"
check "apt installs them" "cd /packages && apt-get install -y --no-install-recommends ./*.deb"
check "the command runs" "posenc encode --scheme rope --len 4 | grep -q '\"cos\"'"
check "the user has no login" "getent passwd _posenc | grep -q nologin"
check "the options are for root and the service" "[ \"\$(stat -c '%a %U %G' /etc/posenc)\" = '750 root _posenc' ]"
check "the service is enabled" "[ -L /etc/systemd/system/multi-user.target.wants/posenc.service ]"
check "the service starts and ends as its user" "timeout -s TERM 3 setpriv --reuid _posenc --regid _posenc --clear-groups \\
    /usr/bin/posencd --config /etc/posenc/posencd.json --port 0 2>&1 | tee /log.service; grep -q 'listening on http://127.0.0.1' /log.service"
check "the library is found" "ldconfig -p | grep -q 'libposenc.so.0 '"
check "a changed configuration survives an upgrade" "echo '{\"max_queue\": 77}' >/etc/posenc/posencd.json &&
    dpkg -i --force-confold /packages/posenc_*.deb && grep -q 77 /etc/posenc/posencd.json"
check "removing keeps the configuration" "dpkg --remove posenc libposenc-dev libposenc0 && [ -f /etc/posenc/posencd.json ] && ! [ -e /usr/bin/posenc ]"
check "purging leaves no file of theirs" "mkdir -p /var/lib/posenc; dpkg --purge posenc; [ ! -e /etc/posenc ] && [ ! -e /var/lib/posenc ] &&
    ! { $list; } | comm -13 /before - | grep posenc"
check "the user stays" "getent passwd _posenc"
rm -rf "$root/packages" "$root/before" "$root/log" "$root/log.service"
echo "$passed passed, 0 failed"
