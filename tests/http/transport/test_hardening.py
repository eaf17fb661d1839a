"""What is built, installed and deployed: the security flags in the executable, the installed library in C and C++, an unprivileged
user, and the settings of the deploy files."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

import numpy as np
import pytest

from conftest import POSENCD, ROOT, SANITIZED, start_server
from connection import wait_until
from tensors import from_raw, multipart, npy
from truth import absolute

BUILD = pathlib.Path(POSENCD).resolve().parent
ARCHIVES = ["libposenc.a", "libposenc-api.a", "libposenc-server.a"]
built_hardened = pytest.mark.skipif(SANITIZED, reason="sanitizers take the place of hardening")


def needs(tool):
    return pytest.mark.skipif(not shutil.which(tool), reason=f"{tool} is not installed")


def said(*command, **more):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=120, **more).stdout


@pytest.fixture(scope="module")
def elf():
    return said("readelf", "-hldW", "--dyn-syms", POSENCD)


# ---- The program ---------------------------------------------------------------------------------------------------------------


@built_hardened
@needs("readelf")
class TestElf:
    def test_position_independent(self, elf):
        assert re.search(r"Type:\s+DYN", elf) and re.search(r"FLAGS_1.*\bPIE\b", elf)

    def test_relocations_are_read_only_before_main(self, elf):
        assert "GNU_RELRO" in elf and re.search(r"FLAGS_1.*\bNOW\b", elf)
        assert "TEXTREL" not in elf and "RPATH" not in elf and "RUNPATH" not in elf

    def test_nothing_is_writable_and_executable(self, elf):
        assert re.search(r"GNU_STACK.* RW +0x", elf)
        loads = re.findall(r"^ +LOAD .* ((?:R| )(?:W| )(?:E| )) 0x", elf, re.M)
        assert len(loads) >= 3 and not any("W" in flags and "E" in flags for flags in loads)

    def test_lengths_are_checked(self, elf):
        """FORTIFY puts the checking functions in the place of these."""
        assert {"__snprintf_chk", "__vsnprintf_chk", "__fprintf_chk", "__stack_chk_fail"} <= set(re.findall(r"\bUND (\w+)@", elf))
        assert not set(re.findall(r"\bUND (\w+)@", elf)) & {"sprintf", "vsprintf", "gets"}

    @pytest.mark.parametrize("archive", ARCHIVES)
    def test_every_object_marks_where_jumps_may_land(self, archive):
        """Read in our objects: Debian's start-up code is not marked, so the linker leaves the mark out of the whole."""
        text = said("readelf", "-nW", BUILD / archive)
        members = text.count("\nFile: ")
        assert members > 10 and len(re.findall("IBT, SHSTK|BTI, PAC", text)) == members

    @pytest.mark.parametrize("archive", ARCHIVES)
    def test_stacks_are_guarded(self, archive):
        n = len(re.findall(r"UND __stack_chk_fail", said("readelf", "-sW", BUILD / archive)))
        assert n > 5, f"{n} objects of {archive} guard a stack"

    @needs("objdump")
    def test_large_frames_touch_every_page(self):
        """-fstack-clash-protection: gcc ors 0 into each page of a large frame, clang stores it, arm64 stores xzr."""
        code = said("objdump", "-d", "--no-show-raw-insn", POSENCD)
        assert re.search(r"orq? +\$0x0,.*\(%[re]sp\)|movq? +\$0x0,\(%rsp\)|str\s+xzr, \[sp, #1024\]", code)


# ---- Unprivileged user ---------------------------------------------------------------------------------------------------------

# No user, no groups, no capability, no way to any, no environment, nothing in /.
BARE = """cd / && exec env -i {setpriv} --reuid 65534 --regid 65534 --clear-groups --no-new-privs --inh-caps=-all --ambient-caps=-all \
    --bounding-set=-all {program} "$@"
"""
# In a mount namespace of its own everything is read only, and /proc shows processes alone (the unit's ProcSubset=pid).
READ_ONLY = """mount --make-rprivate / && mount -o remount,bind,ro / &&
for at in /tmp /dev/shm /var /home /root /run; do mountpoint -q $at && mount -o remount,bind,ro $at; done
mount -t proc -o subset=pid,hidepid=invisible proc /proc &&
"""


def may_make_namespaces():
    return shutil.which("unshare") and \
        subprocess.run(["unshare", "--mount", "sh", "-c", "mount --make-rprivate / && mount -o remount,bind,ro /"], capture_output=True).returncode == 0


@pytest.fixture(scope="module")
def bare():
    """A script in place of posencd; the program is copied to a folder that no other user may read."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        pytest.skip("root and setpriv are needed to become nobody")
    with tempfile.TemporaryDirectory(prefix="posenc-bare-") as folder:
        os.chmod(folder, 0o755)
        program, script, inner = (pathlib.Path(folder, name) for name in ("posencd", "bare", "inner"))
        shutil.copy(POSENCD, program)
        inner.write_text((READ_ONLY if may_make_namespaces() else "") + BARE.format(setpriv=shutil.which("setpriv"), program=program))
        script.write_text(f'#!/bin/sh\nulimit -c 0\nexec {"unshare --mount" if may_make_namespaces() else ""} sh {inner} "$@"\n')
        program.chmod(0o555)
        script.chmod(0o555)
        yield str(script)


def status_of(pid):
    return dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())


def test_serves_as_a_user_who_owns_nothing(bare):
    with start_server(program=bare) as server:
        status = status_of(server.pid)
        assert status["Name"] == "posencd" and status["Uid"].split() == ["65534"] * 4 and status["Groups"].strip() == ""
        assert status["NoNewPrivs"] == "1" and all(int(status[caps], 16) == 0 for caps in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
        assert os.readlink(f"/proc/{server.pid}/cwd") == "/" and pathlib.Path(f"/proc/{server.pid}/environ").read_bytes() == b""
        check_everything_works(server)
        assert server.stop() == 0


def check_everything_works(server):
    got = from_raw(server.ask(scheme="sinusoidal", dim=64, len=5000, format="raw"))["encoding"]
    np.testing.assert_allclose(got, absolute.table(absolute.one_axis(0, 64), [(p,) for p in range(5000)]), atol=1e-7, rtol=0)
    q = np.random.default_rng(1).standard_normal((1, 2, 64, 64)).astype("f4")
    body, headers = multipart(request=json.dumps({"scheme": "none", "format": "raw", "outputs": ["scores"]}), q=npy(q), k=npy(q))
    scores = from_raw(server.post("/attention", body, headers))["scores"]
    np.testing.assert_allclose(scores, q @ q.swapaxes(-1, -2) / 8.0, atol=1e-4)
    assert server.ask(scheme="alibi", len=64, outputs=["bias"], format="png").body[1:4] == b"PNG"
    assert server.get("/metrics").status == server.get("/readyz").status == 200
    server.process.send_signal(signal.SIGHUP)
    time.sleep(0.2)
    assert server.get("/healthz").status == 200


def test_a_folder_it_may_not_write_to_is_said(bare):
    """No half-working server: it ends at once, with the folder's name."""
    done = subprocess.run([bare, "--port", "0", "--weights-dir", "/no-such-folder"], capture_output=True, text=True, timeout=20)
    assert done.returncode not in (0, -11) and "/no-such-folder" in done.stderr


# ---- systemd -------------------------------------------------------------------------------------------------------------------

UNIT = ROOT / "deploy/posenc.service"
YES = ["NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "PrivateUsers", "ProtectKernelTunables",
       "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "ProtectClock", "ProtectHostname", "RestrictNamespaces",
       "RestrictRealtime", "RestrictSUIDSGID", "MemoryDenyWriteExecute", "LockPersonality", "RemoveIPC"]
FIELDS = {"ProtectSystem": ["strict"], "CapabilityBoundingSet": [""], "AmbientCapabilities": [""], "SystemCallArchitectures": ["native"],
          "SystemCallFilter": ["@system-service", "~@privileged"], "RestrictAddressFamilies": ["AF_INET AF_INET6 AF_UNIX"],
          "ProtectProc": ["invisible"], "ProcSubset": ["pid"], "DevicePolicy": ["closed"], "UMask": ["0077"], "LimitCORE": ["0"],
          "User": ["_posenc"], "Type": ["notify"], "WatchdogSec": ["10"], "Restart": ["on-failure"]}


def unit_fields():
    fields = {}
    for line in UNIT.read_text().splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            fields.setdefault(name, []).append(value)
    return fields


def test_the_unit_has_no_privileges():
    fields = unit_fields()
    for name in YES:
        assert fields.get(name) == ["yes"], name
    for name, values in FIELDS.items():
        assert fields.get(name) == values, name
    assert re.fullmatch(r"[1-9]\d*[MG]", fields["MemoryMax"][0]) and int(fields["TasksMax"][0]) >= 1030
    assert int(fields["TimeoutStopSec"][0]) > 30, "longer than --drain-seconds"


@needs("systemd-analyze")
def test_systemd_reads_the_unit_as_it_is_meant(tmp_path):
    unit = tmp_path / "posenc.service"
    unit.write_text(UNIT.read_text().replace("/usr/local/bin/posencd", str(pathlib.Path(POSENCD).resolve())))
    verified = subprocess.run(["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True)
    assert verified.returncode == 0 and verified.stderr == "", verified.stderr
    judged = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=20", unit], capture_output=True, text=True)
    if "--offline" in judged.stderr:
        pytest.skip("this systemd-analyze cannot judge offline")
    assert judged.returncode == 0, judged.stdout[-3000:]


def allowed_calls():
    """Names of the unit's filter, sets within sets, as this machine's systemd has them."""
    sets, now = {}, None
    for line in said("systemd-analyze", "syscall-filter", "--no-pager").splitlines():
        if line.startswith("@"):
            now = sets.setdefault(line.strip(), [])
        elif now is not None and line.strip() and not line.strip().startswith("#"):
            now.append(line.strip())
    names = lambda of: set().union(*({entry} if entry[0] != "@" else names(entry) for entry in sets[of]))
    return names("@system-service") - names("@privileged") | names("@default")


@needs("strace")
@needs("systemd-analyze")
@built_hardened
def test_the_unit_s_filter_lets_every_call_pass(tmp_path):
    traced = tmp_path / "traced"
    traced.write_text(f'#!/bin/sh\nexec strace -D -f -qq -o {tmp_path}/calls {POSENCD} "$@"\n')  # -D: the process is posencd's
    traced.chmod(0o755)
    with start_server(program=str(traced)) as server:
        check_everything_works(server)
    calls = tmp_path / "calls"
    assert wait_until(lambda: "exit_group(0)" in calls.read_text())  # -qq prints no line of the end
    used = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", calls.read_text(), re.M))
    assert {"accept4", "epoll_wait", "openat"} <= used and used <= allowed_calls(), used - allowed_calls()


# ---- Containers ----------------------------------------------------------------------------------------------------------------


def without_comments(name):
    return "\n".join(line for line in (ROOT / name).read_text().splitlines() if not line.lstrip().startswith("#"))


GIVEN = {
    "deploy/compose.yaml": ["read_only: true", "cap_drop: [ALL]", 'user: "65534:65534"', 'security_opt: ["no-new-privileges:true"]', "noexec,nosuid,nodev",
                            "memory: ", "pids_limit: ", "127.0.0.1:8080:8000"],
    "deploy/kubernetes/base/deployment.yaml": [
        "runAsNonRoot: true", "runAsUser: 65534", "seccompProfile: {type: RuntimeDefault}", "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true", "capabilities: {drop: [ALL]}", "automountServiceAccountToken: false", "limits: {cpu:"],
    "Dockerfile": ["USER 65534:65534"],
}


@pytest.mark.parametrize("file", GIVEN)
def test_containers_are_given_nothing(file):
    text = without_comments(file)
    assert [line for line in GIVEN[file] if line not in text] == []
    assert not re.search(r"privileged: *true|cap_add|hostNetwork|hostPath|docker\.sock|unconfined|USER (root|0)\b", text)
