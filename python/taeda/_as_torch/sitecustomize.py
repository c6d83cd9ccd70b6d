"""Runs as processes start that a program under `python -m taeda` started: their own children find
taeda as torch too where they ignore PYTHONPATH. Then the environment's sitecustomize, if there is.
"""

import sys
from importlib import util
from importlib.machinery import PathFinder
from os.path import abspath, dirname, join, realpath

_HERE = dirname(abspath(__file__))


def _load_hook():
    """taeda's `_hook`, which needs nothing else of taeda."""
    if "taeda._hook" in sys.modules:
        return sys.modules["taeda._hook"]
    spec = util.spec_from_file_location("_taeda_hook", join(dirname(_HERE), "_hook.py"))
    hook = util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    return hook


def _reach_isolated(event, arguments):
    if event == "subprocess.Popen":
        _load_hook()._reach_isolated(event, arguments)


def _run_next():
    """The sitecustomize that this one hides."""
    others = [path for path in sys.path if realpath(path or ".") != realpath(_HERE)]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(util.module_from_spec(spec))


sys.addaudithook(_reach_isolated)
_run_next()
