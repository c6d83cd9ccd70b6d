"""Files of public repositories at a revision: cloned once, unpacked where they are needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

CLONES = Path(__file__).resolve().parent.parent / "build" / "repositories"


def unpack(to: Path, repository: str, revision: str, files: list[str], sources: str = "") -> Path:
    """Lays OWNER/NAME's files at a tag or commit into a folder, which it returns.

    `files` are paths within the repository, all of it if empty. `sources` names clones that are
    there already, "F/{owner}+{name}"; without it the repository is cloned into CLONES, once.
    """
    mark = to / ".revision"
    wanted = "\n".join([revision, *files])
    if mark.exists() and mark.read_text() == wanted:
        return to
    owner, name = repository.split("/")
    source = sources.format(owner=owner, name=name)
    to.mkdir(parents=True, exist_ok=True)
    if not source:
        source = str(CLONES / f"{owner}+{name}")
        if not Path(source).exists():
            url = f"https://github.com/{repository}"
            subprocess.run(["git", "clone", "-q", "--bare", url, source], check=True)
    command = ["git", "-C", source, "archive", revision, *files]
    archive = subprocess.Popen(command, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", to], stdin=archive.stdout, check=True)
    if archive.wait():
        raise SystemExit(f"{repository} has no revision {revision} in {source}")
    mark.write_text(wanted)
    return to
