"""Gets what the tests need from outside Python: foreign programs, pages of documentation, test data, npm's soap.

Programs are installed with apt-get, and only as root. Servers and pages are unpacked into .setup/
instead: installing nginx would start a server on port 80, and slim images are set to drop /usr/share/doc.
What cannot be had is listed, with the command that would get it; its tests are skipped.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from environment import REQUIREMENTS, ROOT, SetupError, locked, run, say

CACHE = ROOT / ".setup"
FOREIGN = ROOT / "tests" / "foreign"
PROGRAMS = {"curl": "curl", "ip": "iproute2", "lftp": "lftp", "node": "nodejs", "npm": "npm", "wget": "wget"}
FTP_SERVERS = {"vsftpd": "vsftpd", "proftpd": "proftpd-core"}
DOC_PACKAGES = ("python3.11-doc", "python3.12-doc", "python3.13-doc")
# Real pages: one in many languages and some old encodings, one written by hand in the last century.
PAGE_PACKAGES = ("apache2-doc", "mh-book")
APT_INSTALL = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"]

_updated = False


def may_install() -> bool:
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def update_lists() -> None:
    """As root the package lists are fetched once: without them no package is known."""
    global _updated
    if may_install() and not _updated:
        _updated = True  # one attempt is enough: old lists may still do
        subprocess.run(["apt-get", "update", "-qq"], stdout=sys.stderr.fileno())


def apt(*command: str, cwd: Path | None = None) -> None:
    """Runs apt-get."""
    update_lists()
    # npm alone brings hundreds of packages with three lines each: what apt-get says matters when it fails.
    result = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
        cwd=cwd,
    )
    if result.returncode:
        output = result.stdout.decode(errors="replace").strip()
        raise SetupError(f"failed with status {result.returncode}: {' '.join(command)}\n{output}")


def missing_programs() -> list[str]:
    return [package for program, package in PROGRAMS.items() if not shutil.which(program)]


def get_programs() -> None:
    packages = missing_programs()
    if not packages:
        return
    if not may_install():
        raise SetupError(f"run as root: {' '.join([*APT_INSTALL, *packages])}")
    for package in packages:  # one by one, so that one that does not exist spoils no other
        say(f"installing {package}")
        try:
            apt(*APT_INSTALL, package)
        except SetupError as error:
            say(str(error))
    if missing_programs():
        raise SetupError(f"apt-get could not install: {' '.join(missing_programs())}")


def unpack(package: str, target: Path, *more: str) -> None:
    """Downloads and unpacks Debian packages, not installing them; the target appears whole or not at all."""
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise SetupError("needs Debian or Ubuntu")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="part-") as name:
        folder = Path(name)
        apt("apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", package, *more, cwd=folder)
        for archive in sorted(folder.glob("*.deb")):
            run(["dpkg-deb", "-x", str(archive), str(folder / "content")])
        shutil.rmtree(target, ignore_errors=True)
        (folder / "content").rename(target)


def runs(*command: str) -> bool:
    try:
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return False


def get_nginx() -> None:
    link = CACHE / "bin" / "nginx"
    if shutil.which("nginx") or runs(str(link), "-v"):
        return
    say("getting nginx")
    for package in ("nginx", "nginx-core"):  # where the program is depends on the release
        folder = CACHE / "packages" / package
        try:
            unpack(package, folder)
        except SetupError:
            continue
        program = folder / "usr" / "sbin" / "nginx"
        if runs(str(program), "-v"):
            link.parent.mkdir(exist_ok=True)
            link.unlink(missing_ok=True)
            link.symlink_to(program)
            return
    if not may_install():
        raise SetupError(f"run as root: {' '.join([*APT_INSTALL, 'nginx'])}")
    apt(*APT_INSTALL, "nginx")


def missing_libraries(package: str) -> list[str]:
    """What apt-get would install beside a package."""
    update_lists()
    command = ["apt-get", "install", "--simulate", "--no-install-recommends", package]
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    names = re.findall(r"^Inst (\S+)", result.stdout, re.MULTILINE)
    return [name for name in names if name.startswith("lib")]


def get_ftp_server(program: str, package: str) -> None:
    """Puts a script that runs the server, with the libraries it came with, into .setup/bin."""
    script = CACHE / "bin" / program
    if runs(program, "-v") or runs(str(script), "-v"):
        return
    say(f"getting {program}")
    folder = CACHE / "packages" / package
    unpack(package, folder, *missing_libraries(package))
    libraries = sorted({str(path.parent) for path in folder.glob("**/*.so.*")})
    lines = ["#!/bin/sh", f"export LD_LIBRARY_PATH={':'.join(libraries)}", f'exec {folder}/usr/sbin/{program} "$@"', ""]
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("\n".join(lines))
    script.chmod(0o755)
    if not runs(str(script), "-v"):
        raise SetupError(f"{program} does not run")


def get_ftp_servers() -> None:
    for program, package in FTP_SERVERS.items():
        get_ftp_server(program, package)


def get_documentation() -> None:
    """Puts Python's documentation, as Debian packs it, under .setup/python-doc."""
    target = CACHE / "python-doc"
    if (target / "index.html").exists():
        return
    say("getting Python's documentation")
    for package in DOC_PACKAGES:
        folder = CACHE / "packages" / package
        try:
            unpack(package, folder)
        except SetupError:
            continue
        target.unlink(missing_ok=True)
        target.symlink_to(folder / "usr" / "share" / "doc" / package.removesuffix("-doc") / "html")
        return
    raise SetupError(
        f"none of {', '.join(DOC_PACKAGES)} can be downloaded; perhaps, as root, first: apt-get update"
    )


def get_pages() -> None:
    """Puts further pages, as Debian packs them, under .setup/packages."""
    for package in PAGE_PACKAGES:
        target = CACHE / "packages" / package
        if not target.exists():
            say(f"getting {package}")
            unpack(package, target)


def get_html5lib_tests() -> None:
    """Puts html5lib's source, the only package with its test data, under .setup/packages."""
    pinned = re.search(r"^html5lib==(\S+)", (REQUIREMENTS / "test.txt").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    target = CACHE / "packages" / "html5lib-source"
    if (target / "version").exists() and (target / "version").read_text() == pinned[1]:
        return
    say("getting html5lib's tests")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="part-") as name:
        folder = Path(name)
        download_source(f"html5lib=={pinned[1]}", folder)
        (archive,) = folder.glob("*.tar.gz")
        (folder / "content").mkdir()
        run(["tar", "xzf", str(archive), "--strip-components=1", "-C", str(folder / "content")])
        (folder / "content" / "version").write_text(pinned[1])
        shutil.rmtree(target, ignore_errors=True)
        (folder / "content").rename(target)


def download_source(requirement: str, folder: Path) -> None:
    """pip runs the set-up of a source that it downloads; html5lib's needs a setuptools that still has pkg_resources."""
    constraint = folder / "constraint.txt"
    constraint.write_text("setuptools==80.9.0\n")
    # The variable that counts depends on the version of pip.
    env = ["env", f"PIP_CONSTRAINT={constraint}", f"PIP_BUILD_CONSTRAINT={constraint}"]
    python = ROOT / f".venv-{sys.version_info.major}.{sys.version_info.minor}" / "bin" / "python"
    name = requirement.partition("==")[0]
    options = ["-qq", "--disable-pip-version-check", "--no-deps", "--no-binary", name, "--dest", str(folder)]
    run([*env, str(python), "-m", "pip", "download", *options, requirement])


def get_npm_packages() -> None:
    if not shutil.which("npm"):
        raise SetupError("needs npm")
    stamp = FOREIGN / "node_modules" / ".stamp"
    expected = hashlib.sha256((FOREIGN / "package-lock.json").read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == expected:
        return
    say("installing npm packages")
    run(["npm", "ci", "--no-progress", "--loglevel=error"], cwd=FOREIGN)
    stamp.write_text(expected)


STEPS: dict[str, Callable[[], None]] = {
    "programs": get_programs,
    "nginx": get_nginx,
    "other FTP servers": get_ftp_servers,
    "Python's documentation": get_documentation,
    "other pages": get_pages,
    "html5lib's tests": get_html5lib_tests,
    "npm's soap": get_npm_packages,
}


def main() -> int:
    missing = 0
    with locked():
        for name, step in STEPS.items():
            try:
                step()
            except (SetupError, OSError) as error:
                missing += 1
                say(f"MISSING {name}: {error}")
    say(f"{missing} missing; tests that need them are skipped" if missing else "all there")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
