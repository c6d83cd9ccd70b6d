"""``import torch`` in a process that a program under ``python -m taeda`` has started: taeda.

``python -m taeda`` puts the folder above this one on the search path that such processes inherit.
"""

import sys
from os.path import abspath, dirname

# Older ones than taeda's files are written for; this file says so to all of them.
if sys.version_info < (3, 11):  # noqa: UP036
    raise ImportError(
        f"a program under `python -m taeda` has started {sys.executable}, which is Python "
        f"{sys.version.split()[0]} and cannot run taeda; use its own Python, sys.executable",
        name="torch",
    )

try:
    import taeda  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "taeda":
        raise
    # The first process found it in a folder that this one does not search.
    sys.path.append(dirname(dirname(dirname(dirname(abspath(__file__))))))

from taeda import _hook

# The import system gives what stands here in the end, which is what install() puts here.
del sys.modules["torch"]
_hook.install()
