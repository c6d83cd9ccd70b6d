"""Which functions of torch a __torch_function__ sees, and by which names (torch.overrides)."""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

import taeda

# What no __torch_function__ is asked about: factories, settings, files, types.
_IGNORED = {
    "torch": """
        arange are_deterministic_algorithms_enabled as_strided as_tensor asarray
        autocast_decrement_nesting autocast_increment_nesting bartlett_window blackman_window
        can_cast
        clear_autocast_cache compile cond cudnn_affine_grid_generator cudnn_batch_norm
        cudnn_convolution cudnn_convolution_add_relu cudnn_convolution_relu
        cudnn_convolution_transpose cudnn_grid_sampler cudnn_is_acceptable device dtype empty
        empty_permuted empty_quantized empty_strided enable_grad eye fill finfo fork from_file
        from_numpy frombuffer full get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype
        get_default_device get_default_dtype get_deterministic_debug_mode get_device_module
        get_float32_matmul_precision get_num_interop_threads get_num_threads get_rng_state
        hamming_window hann_window iinfo import_ir_module import_ir_module_from_buffer
        inference_mode
        init_num_threads initial_seed is_anomaly_check_nan_enabled is_anomaly_enabled
        is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
        is_deterministic_algorithms_warn_only_enabled is_grad_enabled is_inference_mode_enabled
        is_storage is_tensor is_vulkan_available is_warn_always_enabled kaiser_window layout
        linspace
        load logspace manual_seed memory_format merge_type_from_type_comment miopen_ctc_loss
        mkldnn_adaptive_avg_pool2d mkldnn_convolution mkldnn_linear_backward_weights
        mkldnn_max_pool2d mkldnn_max_pool3d mkldnn_rnn_layer no_grad normal ones parse_ir
        parse_schema parse_type_comment promote_types qscheme rand rand_like randint randint_like
        randn randn_like randperm range result_type save scalar_tensor seed set_anomaly_enabled
        set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled
        set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype set_default_device
        set_default_tensor_type set_deterministic_debug_mode set_float32_matmul_precision
        set_flush_denormal set_grad_enabled set_num_interop_threads set_num_threads set_printoptions
        set_rng_state set_warn_always sparse_bsc_tensor sparse_bsr_tensor sparse_compressed_tensor
        sparse_coo_tensor sparse_csc_tensor sparse_csr_tensor sym_constrain_range
        sym_constrain_range_for_size sym_fresh_size tensor thread_safe_generator tril_indices
        triu_indices typename unify_type_list use_deterministic_algorithms vander vmap wait
        zeros""",
    "torch.functional": "broadcast_shapes",
    "torch.fft": "fftfreq rfftfreq",
    "torch.nn.functional": """
        assert_int_or_pair boolean_dispatch grouped_mm handle_torch_function hardsigmoid hardswish
        has_torch_function has_torch_function_unary has_torch_function_variadic scaled_grouped_mm
        scaled_mm sigmoid tanh upsample upsample_bilinear upsample_nearest""",
    "torch.nn.init": """
        calculate_gain constant dirac eye kaiming_normal kaiming_uniform normal orthogonal sparse
        uniform xavier_normal xavier_uniform""",
    "torch.Tensor": """
        __class__ __delitem__ __dir__ __getattribute__ __hash__ __init__
        __init_subclass__ __iter__ __new__ __subclasshook__ __torch_dispatch__
        __torch_function__ _addmm_activation _conj _conj_physical _is_all_true _is_any_true
        _is_zerotensor _make_subclass _make_wrapper_subclass _neg_view _to_sparse _typed_storage
        _use_count _view_func as_subclass eig lstsq new new_empty new_empty_strided new_full
        new_ones
        new_tensor new_zeros reinforce solve stride symeig to_padded_tensor to_sparse_bsc
        to_sparse_bsr to_sparse_coo to_sparse_csc to_sparse_csr unflatten""",
}


def _namespaces() -> dict[str, Any]:
    from taeda.nn import functional, init

    return {
        "torch": taeda,
        "torch.functional": taeda.functional,
        "torch.nn.functional": functional,
        "torch.nn.init": init,
        "torch.Tensor": taeda.Tensor,
        "torch.linalg": taeda.linalg,
        "torch.fft": taeda.fft,
        "torch.special": taeda.special,
    }


def _attribute(owner: Any, name: str) -> Any:
    """None where the name can be listed but not read."""
    try:
        return getattr(owner, name, None)
    except NotImplementedError:
        return None


def ignored() -> set[Callable]:
    """The functions that no __torch_function__ is asked about."""
    spaces = _namespaces()
    found = (_attribute(spaces[k], name) for k, names in _IGNORED.items() for name in names.split())
    return {f for f in found if f is not None}


_NO_FUNCTIONS = (types.NoneType, types.ModuleType, taeda.qscheme)


def _callables(owner: Any) -> Iterator[tuple[str, Any]]:
    """Names and functions of a namespace; of a property its getter and setter."""
    of_tensor = owner is taeda.Tensor
    for name in owner.__all__ if owner is taeda.functional else dir(owner):
        if not of_tensor and (name.startswith("_") or name[0].isupper() or name == "unique_dim"):
            continue
        found = _attribute(owner, name)
        inherited = of_tensor and getattr(object, name, None) is found
        if inherited or name == "__weakref__" or isinstance(found, _NO_FUNCTIONS):
            continue
        if not callable(found) and hasattr(found, "__get__"):
            yield f"{name}.__get__", found.__get__
            if hasattr(found, "__set__"):
                yield f"{name}.__set__", found.__set__
        elif callable(found):
            yield name, found


@functools.cache
def overridable() -> tuple[dict[Any, list[Callable]], dict[Callable, str]]:
    """The functions that can be overridden, by namespace or property, and the names of all."""
    functions: dict[Any, list[Callable]] = {}
    names: dict[Callable, str] = {}
    skipped = ignored()
    renaming = (taeda.functional, taeda.nn.functional, taeda.Tensor)  # the last name counts
    for space, owner in _namespaces().items():
        for name, function in _callables(owner):
            if function not in names or owner in renaming:
                names[function] = f"{space}.{name}"
            in_place = owner is not taeda.Tensor and name.endswith("_")
            if function in skipped or in_place or name.endswith(".__set__"):
                continue
            where = getattr(owner, name.removesuffix(".__get__")) if "." in name else owner
            functions.setdefault(where, []).append(function)
    return functions, names


@functools.cache
def tensor_methods() -> set[Callable]:
    """The methods of Tensor that can be overridden."""
    return set(overridable()[0][taeda.Tensor])


# --- stand-ins for tests ---


def _parameters(function: Callable) -> list[inspect.Parameter]:
    """Names and which have defaults, as the signature or the operator's description gives them."""
    if function.__name__ == "__get__":
        return [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        pass
    described = re.search(r"\w+\((.*?)\) -> ", (getattr(function, "__doc__", None) or ""))
    if described is None:
        return [inspect.Parameter(n, _KINDS[n]) for n in ("args", "kwargs")]
    found = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    for text in re.split(r", (?![^\[(]*[\])])", described[1]):
        if text == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif name := re.match(r"\w+", text):
            default = None if "=" in text else inspect.Parameter.empty
            found.append(inspect.Parameter(name[0], kind, default=default))
    return found


_KINDS = {"args": inspect.Parameter.VAR_POSITIONAL, "kwargs": inspect.Parameter.VAR_KEYWORD}


def _stand_in(function: Callable) -> Callable:
    """A function with the same parameters that returns -1."""

    def stand_in(*args: Any, **kwargs: Any) -> int:
        signature.bind(*args, **kwargs)
        return -1

    try:
        signature = inspect.Signature(_parameters(function))
    except ValueError:  # a required parameter behind an optional one
        signature = inspect.signature(lambda *args, **kwargs: -1)
    stand_in.__signature__ = signature  # type: ignore[attr-defined]
    return stand_in


@functools.cache
def stand_ins() -> dict[Callable, Callable]:
    """{function: what stands for it in tests}, of all that can be overridden."""
    lists = overridable()[0].values()
    return {f: _stand_in(f) for functions in lists for f in functions}


def name_of(function: Callable) -> str | None:
    """'torch.add'; 'aten.add.Tensor' of operators; None of what is no part of torch."""
    try:
        found = overridable()[1].get(function)
    except TypeError:  # without a hash
        return None
    operator = isinstance(function, (taeda._ops.OpOverload, taeda._ops.OpOverloadPacket))
    return str(function) if operator and found is None else found
