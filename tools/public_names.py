"""PyTorch's modules whose public names are compared with taeda's, and what may differ.

tests/python/test_reachable_names.py holds each difference against this list, both ways: a name that
is neither here nor in PyTorch, and an entry that no longer differs, fail. tools/coverage.py writes
the list to docs/coverage.md.
"""

from __future__ import annotations

import enum
import importlib
import re
from types import ModuleType
from typing import Any

MODULES = """
accelerator amp amp.autocast_mode amp.grad_scaler ao ao.quantization autograd autograd.anomaly_mode
autograd.forward_ad autograd.function autograd.functional autograd.grad_mode autograd.gradcheck
autograd.graph autograd.profiler autograd.variable backends backends.cpu backends.cuda
backends.cudnn backends.cusparselt backends.kleidiai backends.mha backends.miopen backends.mkl
backends.mkldnn backends.mps backends.nnpack backends.openmp backends.opt_einsum
backends.python_native backends.quantized backends.xeon compiler cpu cpu.amp cuda cuda.amp cuda.comm
cuda.graphs cuda.green_contexts cuda.memory cuda.nccl cuda.nvtx cuda.profiler cuda.random
cuda.streams cuda.tunable distributions distributions.constraints distributions.kl
distributions.transforms distributions.utils export func functional futures fx fx.graph
fx.graph_module fx.interpreter fx.node fx.proxy hub jit jit.annotations library masked monitor mps
mps.event mps.profiler mtia mtia.memory multiprocessing nested nn.attention nn.attention.bias
nn.attention.flex_attention nn.attention.varlen nn.common_types nn.grad nn.init nn.modules
nn.parallel nn.parameter nn.utils nn.utils.fusion nn.utils.parametrizations nn.utils.parametrize
nn.utils.prune nn.utils.rnn nn.utils.stateless numa onnx optim optim.lr_scheduler optim.swa_utils
overrides profiler profiler.itt profiler.profiler quantization quasirandom random return_types
serialization signal signal.windows sparse special storage testing torch_version types utils
utils.backcompat utils.backend_registration utils.benchmark utils.checkpoint utils.cpp_extension
utils.data utils.data.dataloader utils.data.datapipes utils.data.dataset utils.data.distributed
utils.data.graph utils.data.sampler utils.deterministic utils.dlpack utils.file_baton
utils.flop_counter utils.hooks utils.mkldnn utils.mobile_optimizer utils.model_zoo
utils.module_tracker utils.show_pickle utils.throughput_benchmark utils.weak version xpu xpu.memory
xpu.random xpu.streams __config__ __future__
""".split()

# module -> (names, why they are missing) of PyTorch's other public names that cannot be read.
MISSING: dict[str, tuple[str, str]] = {}

_MESSAGE = "a text that PyTorch's messages are made of"
_QUANTIZED = "there are no quantized tensors"
_TYPE = "a name for annotations"
_COMPILERS = "no extensions of PyTorch's are compiled"

# module -> names, why they are missing, and so on, of PyTorch's constants: public values of modules
# that are no functions, classes or modules, whether __all__ has them or not.
CONSTANTS = {
    "ao.quantization": (
        "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS DEFAULT_DYNAMIC_SPARSE_QUANT_MODULE_MAPPINGS "
        "DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS "
        "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS "
        "DEFAULT_STATIC_QUANT_MODULE_MAPPINGS DEFAULT_STATIC_SPARSE_QUANT_MODULE_MAPPINGS",
        _QUANTIZED,
    ),
    "quantization": (
        "DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS DEFAULT_FLOAT_TO_QUANTIZED_OPERATOR_MAPPINGS "
        "DEFAULT_REFERENCE_STATIC_QUANT_MODULE_MAPPINGS DEFAULT_STATIC_QUANT_MODULE_MAPPINGS",
        _QUANTIZED,
    ),
    "autograd.gradcheck": (
        "FAILED_BATCHED_GRAD_MSG FAILED_BATCHED_GRAD_MSG_FWD_AD FAILED_NONDET_MSG "
        "FAST_FAIL_SLOW_OK_MSG",
        _MESSAGE,
    ),
    "autograd.function": ("AUTOGRAD_FUNCTION_COUNTER", "no functions are counted"),
    "backends.cudnn": ("CUDNN_TENSOR_DTYPES", "cuDNN is not called"),
    "cuda": ("DEVICE_REQUIREMENT PYTORCH_RELEASES_CODE_CC", "of PyTorch's builds"),
    "cuda.profiler": ("DEFAULT_FLAGS", "CUDA's profiler is not called"),
    "fx.graph": ("dtype_abbrs py_sym_types", "of PyTorch's compilers"),
    "fx.graph_module": ("sys_importer", "no packages are written"),
    "fx.interpreter": ("Target", _TYPE),
    "fx.node": ("dtype_abbrs", "of PyTorch's compilers"),
    "fx.proxy": ("annotation_log method orig_method_name", "left behind by a loop"),
    "library": ("NAMELESS_SCHEMA device_types_t", _TYPE),
    "nn.attention.varlen": ("flop_registry", "of utils.flop_counter"),
    "optim.swa_utils": ("PARAM_LIST", _TYPE),
    "return_types": ("name", "left behind by a loop"),
    "serialization": ("STORAGE UNSAFE_MESSAGE", _MESSAGE),
    "sparse": ("DimOrDims", _TYPE),
    "amp.autocast_mode": ("HAS_NUMPY", "NumPy is there or not when it is asked for"),
    "storage": ("HAS_NUMPY", "NumPy is there or not when it is asked for"),
    "distributions.kl": ("inf", "math's"),
    "optim.lr_scheduler": ("inf", "math's"),
    "torch_version": ("cmp_method", "left behind by a loop"),
    "types": ("PySymType py_sym_types", "no sizes are symbols"),
    "utils.cpp_extension": (
        "ABI_INCOMPATIBILITY_WARNING BUILT_FROM_SOURCE_VERSION_PATTERN COMMON_HIPCC_FLAGS "
        "COMMON_HIP_FLAGS COMMON_MSVC_FLAGS COMMON_NVCC_FLAGS CUDA_CLANG_VERSIONS "
        "CUDA_GCC_VERSIONS CUDA_MISMATCH_MESSAGE CUDA_MISMATCH_WARN CUDA_NOT_FOUND_MESSAGE "
        "JIT_EXTENSION_VERSIONER MINIMUM_CLANG_VERSION MINIMUM_GCC_VERSION MINIMUM_MSVC_VERSION "
        "MSVC_IGNORE_CUDAFE_WARNINGS PLAT_TO_VCVARS TORCH_LIB_PATH WRONG_COMPILER_WARNING "
        "min_supported_cpython",
        _COMPILERS,
    ),
    "utils.data.dataset": ("default_generator", "torch's"),
    "utils.data.graph": ("DataPipe", _TYPE),
}
# What PyTorch's modules have for themselves alone, and strings that their docstrings are made of.
NO_CONSTANTS = frozenset(
    "TYPE_CHECKING annotations log logger common_notes common_args factory_common_args "
    "multi_dim_common reproducibility_notes sparse_support_notes tf32_notes BroadcastingList1 "
    "BroadcastingList2 BroadcastingList3".split()
)


def constants(module: ModuleType) -> set[str]:
    """The names of a module's constants."""
    members = vars(module)
    if isinstance(members.get("m"), ModuleType):  # torch.backends' stand before theirs
        members = vars(members["m"])
    return {
        name
        for name, value in members.items()
        if not name.startswith("_") and name not in NO_CONSTANTS
        if not callable(value) and not isinstance(value, ModuleType)
        if type(value).__module__ not in ("typing", "__future__")
    }


_HERE = "defined in this module here; in PyTorch in one beside it"
_ALLOCATOR = "the CPU's allocator answers as torch.cuda's does"

# module -> (names, why they are there) of public names that PyTorch lacks.
ADDED = {
    "amp.autocast_mode": (
        "autocast_decrement_nesting autocast_increment_nesting get_autocast_cpu_dtype "
        "get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled "
        "is_autocast_cpu_enabled is_autocast_enabled set_autocast_cache_enabled "
        "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled "
        "set_autocast_gpu_dtype",
        _HERE,
    ),
    "autograd.grad_mode": ("is_grad_enabled is_inference_mode_enabled", _HERE),
    "backends.nnpack": ("enabled", "the switch behind set_flags"),
    "cpu": (
        "empty_cache max_memory_allocated max_memory_reserved mem_get_info memory_allocated "
        "memory_reserved memory_snapshot memory_stats memory_stats_as_nested_dict memory_summary "
        "reset_peak_memory_stats set_per_process_memory_fraction",
        _ALLOCATOR,
    ),
    "cuda": ("preload", "loads kernels before they are first asked for"),
    "cuda.streams": (
        "StreamContext current_stream default_stream get_stream_from_external set_stream stream",
        _HERE,
    ),
    "utils.data": ("SharedList", "objects that forked workers read without copying them"),
    "quantization": ("*", "the old name of ao.quantization, all of which it holds"),
    "version": ("TorchVersion taeda", "taeda's own version, and the class of both"),
}

# Modules of which each test compares every name of PyTorch's, whether it is public or not.
MAIN = ("", "nn", "nn.functional", "linalg", "fft", "Tensor")
_REASON = re.compile(r"NotImplementedError(?: when called)?: (.*)\.$", re.DOTALL)


def raising(package: Any) -> dict[str, tuple[Any, str]]:
    """Name -> object and why, of what raises when called in these modules and taeda._missing's.

    Enumerations, exceptions and dtypes of PyTorch's that nothing here uses are no such names.
    """
    tables = importlib.import_module(f"{package.__name__}._missing")._modules()
    modules = {*MAIN, *MODULES, *(name.partition(".")[2] for name in tables)}
    found = {}
    for module in sorted(modules):
        owner = (
            package.Tensor
            if module == "Tensor"
            else importlib.import_module(f"{package.__name__}.{module}".rstrip("."))
        )
        for name in dir(owner):
            value = vars(owner).get(name) if module == "Tensor" else getattr(owner, name)
            if _raises(value):
                doc = _REASON.match(value.__doc__ or "")
                found[f"{module}.{name}".lstrip(".")] = value, doc[1] if doc else ""
    return found


def _raises(value: Any) -> bool:
    if isinstance(value, ModuleType) or not callable(value):
        return False
    if isinstance(value, type) and issubclass(value, enum.Enum | Exception):
        return False
    return getattr(value, "_only_raises", False) is True
