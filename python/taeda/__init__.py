"""taeda: tensors, automatic differentiation and neural networks with PyTorch's interface.

>>> import taeda as torch
>>> x = torch.ones(3, requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 2., 2.])

Importing this module loads the core and nothing else: ``torch.nn``, ``torch.optim`` and the other
parts are loaded when they are first used, NumPy when an array is asked for.
"""

from __future__ import annotations

import importlib as _importlib
import os as _os
import sys as _sys
from math import e, inf, nan, pi  # noqa: F401

_flags = _sys.getdlopenflags()
try:
    # Functions of the libraries are found when they are first called, not all of them now.
    _sys.setdlopenflags(_flags & ~_os.RTLD_NOW | _os.RTLD_LAZY)
    from taeda import _C
except ImportError:
    from taeda._hook import check_python

    check_python()
    raise
finally:
    _sys.setdlopenflags(_flags)
from taeda._C import *  # noqa: E402, F403
from taeda._C import OutOfMemoryError, Tensor  # noqa: E402, F401
from taeda.version import __version__  # noqa: E402, F401

newaxis = None

# The operators of the table.
globals().update(_C._by_owner["torch"])

from taeda import _storage_methods, _tensor  # noqa: E402, F401
from taeda._functional import *  # noqa: E402, F403
from taeda._functional import _assert, _check  # noqa: E402, F401
from taeda._unique import _unique, nonzero, unique, unique_consecutive  # noqa: E402, F401


class _MissingFinder:
    """Finds, after all others, modules without a file: those of taeda._missing's tables, and those
    that a package makes when they are read."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> object:
        if not name.startswith("taeda.") or name.startswith("taeda._missing"):
            return None
        return _part("_missing").find_spec(name)


_sys.meta_path.append(_MissingFinder)  # type: ignore[arg-type]
# torch._C has names that are written in Python, and modules.
_C.__path__ = []
_C.__getattr__ = lambda name: getattr(_part("_core"), name)

# Parts of the package, loaded on first use.
_SUBMODULES = frozenset(
    "_VF __config__ __future__ _compile _custom_ops _decomp _dynamo _functorch _higher_order_ops "
    "_jit_internal _library _linalg_utils _logging _lobpcg _lowrank _ops _prims_common _refs "
    "_subclasses _tensor _tensor_str _utils _utils_internal _vmap_internals "
    "_weights_only_unpickler "
    "accelerator amp ao autograd backends compiler cpu cuda distributed distributions fft func "
    "functional futures fx hub jit library linalg masked mps mtia multiprocessing nested nn "
    "onnx optim overrides profiler quantization quasirandom random return_types serialization "
    "signal sparse special storage testing torch_version types utils version xpu".split()
)

# Modules of the standard library that torch shows, since it imports them.
_MODULES = frozenset(
    "builtins ctypes functools glob importlib inspect math os platform sys textwrap threading "
    "warnings".split()
)

# What is in this module and not in torch.
_NOT_TORCHS = frozenset("annotations env safetensors summary".split())

# name -> the module that defines it, loaded on first use.
_LAZY = {
    name: module
    for module, names in {
        "taeda._tensor_str": "set_printoptions",
        "taeda._dtypes": "finfo iinfo",
        "taeda.autograd.grad_mode": "no_grad enable_grad set_grad_enabled is_grad_enabled "
        "inference_mode is_inference_mode_enabled",
        "taeda.serialization": "save load",
        "taeda.serialization._archive": "PyTorchFileReader PyTorchFileWriter",
        "taeda.utils._device": "get_default_device set_default_device",
        "taeda.storage": "TypedStorage _storage_classes",
        "taeda.amp": "GradScaler",
        "taeda.amp.autocast_mode": "autocast autocast_decrement_nesting autocast_increment_nesting "
        "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
        "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
        "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype",
        "taeda.nn.parameter": "",
        "taeda.nn._summary": "summary",
        "taeda._ops": "ops",
        "taeda._streams": "Event Stream get_device_module",
        "taeda.func": "vmap",
        "taeda.compiler": "compile",
        "taeda._compile": "_disable_dynamo",
        "taeda.futures": "Future",
        "taeda._higher_order_ops": "cond while_loop",
        "taeda._lobpcg": "lobpcg",
        "taeda.nn._functional.grouped": "_grouped_mm",
        "taeda._checks": "_check_with _check_index _check_value _check_type "
        "_check_not_implemented _check_is_size _check_tensor_all_with _check_tensor_all",
        "taeda._functions.recurrent": "lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell "
        "rnn_relu_cell",
        "taeda._functions.layers": "_native_batch_norm_legit embedding_bag bilinear "
        "affine_grid_generator grid_sampler_2d "
        "grid_sampler_3d native_dropout _grid_sampler_2d_cpu_fallback "
        "norm_except_dim conv_tbc binary_cross_entropy_with_logits cosine_embedding_loss "
        "hinge_embedding_loss kl_div margin_ranking_loss poisson_nll_loss triplet_margin_loss "
        "ctc_loss",
        "taeda._functions.tensors": "_has_compatible_shallow_copy_type _int_mm _weight_norm "
        "_softmax _log_softmax _softmax_backward_data _log_softmax_backward_data "
        "detach_ fill_ zero_ index_put_ get_device is_neg "
        "_debug_has_internal_overlap is_signed is_distributed dequantize _assert_async "
        "_shape_as_tensor "
        "frobenius_norm nuclear_norm row_stack lu gradient",
        "taeda.sparse._copies": "ccol_indices_copy col_indices_copy crow_indices_copy indices_copy "
        "row_indices_copy values_copy",
        "taeda._functions.copies": "split_copy split_with_sizes_copy unbind_copy",
        "taeda._functions.indices": "_convert_indices_from_coo_to_csr "
        "_convert_indices_from_csr_to_coo",
        "taeda._functions.quantization": "qscheme per_tensor_affine per_tensor_symmetric "
        "per_channel_affine per_channel_symmetric per_channel_affine_float_qparams "
        "fake_quantize_per_tensor_affine fake_quantize_per_channel_affine "
        "fused_moving_avg_obs_fake_quant _fused_moving_avg_obs_fq_helper "
        "_fake_quantize_learnable_per_tensor_affine _fake_quantize_learnable_per_channel_affine",
        "taeda._functions.removed": "eig lstsq matrix_rank solve symeig",
        "taeda._functions.build": "has_lapack has_spectral has_mkl has_openmp USE_GLOBAL_DEPS "
        "USE_RTLD_GLOBAL_WITH_LIBTORCH legacy_contiguous_format DisableTorchFunction Storage "
        "DisableTorchFunctionSubclass StorageBase DispatchKey DispatchKeySet fork wait Tag "
        "compiled_with_cxx11_abi is_vulkan_available init_num_threads set_anomaly_enabled "
        "sym_sqrt classproperty _nnpack_available PRIVATE_OPS AggregationType SUM AVG",
        "taeda._utils_internal": "get_file_path",
        "taeda.sparse._construct": "sparse_coo_tensor sparse_compressed_tensor sparse_csr_tensor "
        "sparse_csc_tensor sparse_bsr_tensor sparse_bsc_tensor _sparse_coo_tensor_unsafe",
        "taeda.sparse._products": "spmm dsmm hspmm hsmm smm sspaddmm saddmm",
    }.items()
    for name in names.split()
}


def __getattr__(name: str):
    if name in _LAZY:
        value = getattr(_importlib.import_module(_LAZY[name]), name)
    elif name in _SUBMODULES:
        return _part(name)
    elif name.startswith("_foreach_") and hasattr(_part("_foreach"), name):
        value = getattr(_part("_foreach"), name)
    elif name in _MODULES:
        value = _importlib.import_module(name)
    elif name.startswith("_") and _is_private(name):
        value = getattr(_part("_functions.private"), name)
    elif name.endswith("Tensor") and name in _part("_dtypes").TENSOR_TYPES:
        value = _part("_dtypes").TENSOR_TYPES[name]
    elif name.endswith("Storage") and name in _part("storage").CLASSES:
        value = _part("storage").CLASSES[name]
    else:
        return _part("_missing").attribute("taeda", name)
    globals()[name] = value
    return value


def _is_private(name: str):
    return _part("_functions.private").has(name)


def _part(name: str):
    return _importlib.import_module(f"taeda.{name}")


def __dir__() -> list[str]:
    classes = (*_part("_dtypes").TENSOR_TYPES, *_part("storage").CLASSES)
    missing = _part("_missing").names("taeda")
    return sorted({*globals(), *_SUBMODULES, *_LAZY, *classes, *missing} - _NOT_TORCHS)


bool = _C.bool  # last: the names of builtin types are dtypes from here on
