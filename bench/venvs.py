"""The peers' own Python environments, made on first use in the work folder from peers/requirements.json."""

import json
import os
import subprocess
import sys

from prepare import say

REQUIREMENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peers", "requirements.json")


class Unavailable(Exception):
    """The peer cannot be had on this machine; says why in one line."""


def requirements():
    """{venv: {"packages": [pip arguments, installed in turn], "debian": [...], "environment": {...}, "peers": [...]}}"""
    with open(REQUIREMENTS) as file:
        return json.load(file)


failed = {}  # venv -> reason, so that one failure is met once


def python_of(script, work):
    """The interpreter for peers/`script`.py. Raises Unavailable."""
    name = next(name for name, venv in requirements().items() if script in venv["peers"])
    venv, folder = requirements()[name], os.path.join(work, "venv-" + name)
    python, stamp = os.path.join(folder, "bin", "python"), os.path.join(folder, "installed")
    want = json.dumps([venv.get("debian", []), venv["packages"], venv.get("environment", {})])
    if os.path.exists(stamp):
        with open(stamp) as file:
            if file.read() == want:
                return python
    if name not in failed:
        try:
            install_debian(venv.get("debian", []))
            say(f"installing into {os.path.relpath(folder)}: {', '.join(venv['packages'])}")
            attempt([sys.executable, "-m", "venv", folder])
            for packages in venv["packages"]:
                attempt([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages.split()], venv.get("environment", {}))
            with open(stamp, "w") as file:
                file.write(want)
            return python
        except Unavailable as reason:
            failed[name] = str(reason)
    raise Unavailable(failed[name])


def attempt(command, environment=None):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **(environment or {})})
    if done.returncode:
        lines = [line for line in done.stderr.strip().splitlines() if line.lower().startswith(("error", "e:"))] or ["it printed nothing"]
        raise Unavailable(f"cannot install: {' '.join(command[1:])}: {lines[-1]}")


def install_debian(packages):
    """The shared libraries that some wheels and sdists ask for."""
    missing = [package for package in packages if subprocess.run(["dpkg-query", "-s", package], capture_output=True).returncode]
    if missing and os.geteuid():
        raise Unavailable(f"needs the Debian packages {' '.join(missing)}")
    if missing:
        say(f"installing Debian packages: {' '.join(missing)}")
        attempt(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], {"DEBIAN_FRONTEND": "noninteractive"})
