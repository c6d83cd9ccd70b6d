"""Calls of modules with other parameters."""

from __future__ import annotations

from taeda.func import functional_call as functional_call
from taeda.func import stack_module_state as stack_module_state
