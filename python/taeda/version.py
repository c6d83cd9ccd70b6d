"""The versions: taeda's own, and the release of PyTorch whose interface it has."""

from __future__ import annotations

taeda = "0.1.0"
debug = False
cuda: str | None = None
git_version = "unknown"
hip: str | None = None
rocm: str | None = None
xpu: str | None = None


def _release(version: object) -> tuple[int, ...]:
    """(2, 13, 0) of '2.13.0+taeda', of (2, 13) or of 2."""
    if isinstance(version, (tuple, list)):
        return tuple(int(v) for v in version if str(v).isdigit())
    numbers = []
    for part in str(version).removeprefix("v").split("+")[0].split("."):
        digits = len(part) - len(part.lstrip("0123456789"))
        if digits:
            numbers.append(int(part[:digits]))
        if digits < len(part):
            break  # "0rc1": what follows is no release number
    return tuple(numbers)


class TorchVersion(str):
    """A version string that compares by its numbers: '2.13.0' > '2.2'."""

    def _pair(self, other: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
        mine, theirs = _release(str(self)), _release(other)
        size = max(len(mine), len(theirs))
        return mine + (0,) * (size - len(mine)), theirs + (0,) * (size - len(theirs))

    def __lt__(self, other: object) -> bool:
        mine, theirs = self._pair(other)
        return mine < theirs

    def __le__(self, other: object) -> bool:
        mine, theirs = self._pair(other)
        return mine <= theirs

    def __gt__(self, other: object) -> bool:
        return not self <= other

    def __ge__(self, other: object) -> bool:
        return not self < other

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str) and str.__eq__(self, other):
            return True
        mine, theirs = self._pair(other)
        return bool(theirs) and mine == theirs

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


__version__ = TorchVersion("2.13.0+taeda")
