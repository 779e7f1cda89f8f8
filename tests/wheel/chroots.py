"""Bare systems to try a wheel in: Debian 12 with its Python, and Debian 11 (glibc 2.31), whose Python is too old.

They are made once, in build/wheel-deps. What a test writes in one goes to memory and is gone with the test.
"""

import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "wheels"))
import make  # noqa: E402
import toolchain  # noqa: E402

DEPS = ROOT / "build/wheel-deps"

# Its own /proc, memory where programs write, and no certificates. All of it ends with the namespace.
ENTER = """
mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/tmp" && mount -t tmpfs tmpfs "$0/dev/shm" && mount --bind "$1" "$0/mnt" &&
  mkdir -p "$0/etc/ssl/certs" && mount -t tmpfs tmpfs "$0/etc/ssl/certs" || exit 99
root=$0
shift
exec chroot "$root" /usr/bin/env -i PATH=/usr/bin:/bin HOME=/tmp LC_ALL=C.UTF-8 "$@"
"""


def why_not() -> str:
    """Why no chroot can be made here; empty: one can."""
    if os.geteuid() != 0:
        return "chroots need root"
    if shutil.which("debootstrap") is None:
        return "debootstrap is not installed"
    done = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no file system can be mounted here: {done.stderr.strip()}"


def system(suite: str, *packages: str) -> pathlib.Path:
    """The root folder of a minimal Debian."""
    root = DEPS / f"chroot-{suite}"
    if not root.exists():
        scratch = DEPS / f"chroot-{suite}.part"
        shutil.rmtree(scratch, ignore_errors=True)
        include = [f"--include={','.join(packages)}"] if packages else []
        toolchain.run(["debootstrap", "--variant=minbase", *include, suite, scratch, toolchain.mirrors()[0]], DEPS / f"chroot-{suite}.log")
        scratch.rename(root)
    return root


def run_in(root: pathlib.Path, hand: pathlib.Path, *command: str) -> str:
    """Runs a command in the chroot, with the folder `hand` at /mnt."""
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", ENTER, str(root), str(hand), *command],
                          capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


__all__ = ["DEPS", "ROOT", "make", "run_in", "system", "why_not"]
