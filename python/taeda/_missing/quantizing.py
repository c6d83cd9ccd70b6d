"""Quantization of graphs, of which libraries import the parts: the modules in torch.ao."""

from __future__ import annotations

_QUANTIZATION = "taeda has no quantized tensors; train and run in bfloat16 instead"
_GRAPHS = "taeda quantizes no graphs; train and run in bfloat16 instead"


def _of(package: str, names: str) -> str:
    return " ".join(f"{name}={package}.{name}" for name in names.split())


_FX = {
    "_equalize": "convert_eq_obs update_obs_for_equalization",
    "custom_config": "ConvertCustomConfig FuseCustomConfig PrepareCustomConfig",
    "graph_module": "ObservedGraphModule _is_observed_module _is_observed_standalone_module",
    "lower_to_fbgemm": "lower_to_fbgemm",
    "prepare": "_insert_obs_or_fq _save_state prepare",
    "qconfig_mapping_utils": "_compare_prepare_convert_qconfig_mappings "
    "_generate_node_name_to_qconfig _is_qconfig_supported_by_dtype_configs "
    "_update_qconfig_for_fusion _update_qconfig_for_qat",
    "utils": "_get_module graph_module_from_producer_nodes node_arg_is_weight",
}
_STEPS = {
    "fuse_modules": ("fuse_known_modules get_fuser_method", "fuse_modules fuse_modules_qat"),
    "quantize": (
        "_remove_qconfig _convert _observer_forward_hook is_activation_post_process",
        "convert prepare prepare_qat propagate_qconfig_ quantize quantize_dynamic quantize_qat "
        "swap_module",
    ),
    "quantize_jit": ("prepare_jit convert_jit", "quantize_jit quantize_dynamic_jit"),
    "qconfig_mapping": (
        "", "QConfigMapping get_default_qat_qconfig_mapping get_default_qconfig_mapping"
    ),
}  # fmt: skip

MODULES = {
    **{f"torch.ao.quantization.fx.{name}": (_GRAPHS, names) for name, names in _FX.items()},
    **{
        f"torch.ao.quantization.{name}": (
            _QUANTIZATION, f"{own} {_of('torch.ao.quantization', names)}"
        )
        for name, (own, names) in _STEPS.items()
    },
    **{
        f"torch.quantization.{name}": (_QUANTIZATION, f"*torch.ao.quantization.{name}")
        for name in ("fuse_modules", "quantize", "quantize_jit")
    },
    "torch.ao.quantization.qconfig": (_QUANTIZATION, "class:QConfigAny qconfig_equals"),
    "torch.ao.quantization.quantize_fx": (_GRAPHS, "_convert_to_reference_decomposed_fx"),
    "torch.ao.quantization.fx._decomposed": (
        _QUANTIZATION,
        "_per_token_quant_qparam_dim_check quantize_per_channel_group quantize_per_tensor "
        "dequantize_per_channel_group dequantize_per_tensor "
        "quantized_decomposed_lib=torch._library.decomposed.quantized_decomposed_lib",
    ),
    "torch.ao.quantization.backend_config": (
        _GRAPHS,
        "BackendConfig BackendPatternConfig DTypeConfig get_executorch_backend_config "
        "get_native_backend_config",
    ),
    "torch.ao.quantization.backend_config.utils": (
        _GRAPHS,
        "get_fused_module_classes get_pattern_to_dtype_configs get_qat_module_classes "
        "get_root_module_to_quantized_reference_module",
    ),
    "torch.ao.quantization.utils": (
        _GRAPHS,
        "MatchAllNode _parent_name get_qparam_dict is_per_channel to_underlying_dtype "
        "weight_is_quantized",
    ),
    "torch.ao.ns.fx.utils": (_GRAPHS, "compute_cosine_similarity compute_normalized_l2_error "
        "compute_sqnr"),
}  # fmt: skip
