"""The layers of the library: which folder of src/ may use which, and where public headers belong.

One table for the two checks that enforce it: check_layers.py reads the includes, check_links.py the
symbols of the object files.
"""

from __future__ import annotations

# A layer uses itself and the layers named here, nothing else.
ALLOWED: dict[str, set[str]] = {
    "base": set(),
    "core": {"base"},
    "device": {"base", "core"},
    "kernels": {"base", "core", "device"},
    "ops": {"base", "core", "device", "kernels"},
    "autograd": {"base", "core", "device", "kernels", "ops"},
    "nn": {"base", "core", "ops", "autograd"},
    "optim": {"base", "core", "ops", "autograd"},
    "data": {"base", "core", "ops", "autograd"},
    "io": {"base", "core", "ops", "autograd", "nn"},
    "jit": {"base", "core", "ops", "autograd"},
    "profile": {"base", "core", "ops"},
    "python": {"base", "core", "device", "ops", "autograd", "data", "io", "jit", "profile"},
}
ORDER = list(ALLOWED)
# This one is for users: it takes in all public headers, and no file of the library includes it.
UMBRELLA = "taeda/taeda.h"

# The layer that a public header (include/taeda/NAME.h) belongs to. What is not named here is ops':
# the generated list of operators and the methods of Tensor.
PUBLIC_HEADERS: dict[str, str] = {
    "error": "base",
    "ref": "base",
    "small_vector": "base",
    "warning": "base",
    "device": "core",
    "dtype": "core",
    "float8": "core",
    "generator": "core",
    "keys": "core",
    "scalar": "core",
    "storage": "core",
    "tensor": "core",
    "tensor_impl": "core",
    "values": "core",
    "indexing": "ops",
    "operator": "ops",
    "autograd": "autograd",
    "nn": "nn",
    "optim": "optim",
    "data": "data",
    "serialize": "io",
    "trace": "jit",
    "profile": "profile",
}


def may_use(user: str, used: str) -> bool:
    return user == used or used in ALLOWED[user]
