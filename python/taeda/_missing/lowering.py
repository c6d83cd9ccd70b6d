"""What libraries extend of a compiler that writes kernels: torch._inductor, Triton's kernels."""

from __future__ import annotations

_EAGER = "taeda has no compiler; programs run eagerly"
_TRITON = "taeda runs no kernels of Triton; use the functions of torch"
_PASSES = "taeda has no such pass over graphs; write it with torch.fx.Graph"
_ALONE = "taeda has no memory that processes on several devices share; use one process"

_INDUCTOR = {
    "codegen.cpp_flex_attention_template": "CppFlexAttentionTemplate",
    "codegen.cpp_template": "CppTemplate",
    "codegen.cpp_template_kernel": "CppTemplateKernel parse_expr_with_index_symbols "
    "wrap_with_tensorbox",
    "codegen.triton": "TritonOverrides",
    "constant_folding": "ConstantFolder constant_fold",
    "custom_graph_pass": "CustomGraphPass get_hash_for_files",
    "decomposition": "decompositions={} @register_decomposition",
    "freezing_utils": "maybe_set_is_frozen_param",
    "fx_passes.freezing_patterns": "freezing_passes @register_freezing_graph_pattern",
    "fx_passes.mkldnn_fusion": "_gelu_fusion_1 _gelu_fusion_2 _get_remaining_users "
    "_hardswish_fusion _hardtanh_fusion _silu_fusion",
    "ir": "Buffer ChoiceCaller CppTemplateBuffer FixedLayout IRNode Layout Pointwise "
    "TensorBox get_fill_order",
    "kernel.flex.common": "construct_strides maybe_realize",
    "lowering": "lowerings={} @register_lowering to_dtype",
    "pattern_matcher": "Arg CallFunction KeywordArg Match PatternMatcherPass filter_nodes "
    "@register_graph_pattern @register_lowering_pattern",
    "select_algorithm": "DataProcessorTemplateWrapper ExternKernelChoice TritonTemplate "
    "autotune_select_algorithm",
    "virtualized": "V ops",
}

MODULES = {
    **{f"torch._inductor.{name}": (_EAGER, names) for name, names in _INDUCTOR.items()},
    "torch._inductor.utils": (_EAGER, "parallel_num_threads"),
    "torch._higher_order_ops.inline_asm_elementwise": (_TRITON, "inline_asm_elementwise"),
    "torch.sparse._triton_ops": (
        _TRITON,
        "broadcast_batch_dims bsr_dense_addmm bsr_dense_mm launch_kernel prepare_inputs "
        "ptr_stride_extractor tile_to_blocksize",
    ),
    "torch.sparse._triton_ops_meta": (_TRITON, "dump get_meta minimize optimize_bsr_dense_addmm "
        "update"),
    "torch.distributed._symmetric_memory": (_ALONE, "enable_symm_mem_for_group empty "
        "get_symm_mem_workspace is_symm_mem_enabled_for_group rendezvous"),
    "torch.fx.passes.utils.matcher_with_name_node_map_utils": (
        _PASSES, "InternalMatch SubgraphMatcherWithNameNodeMap"
    ),
    "torch.fx.passes.utils.source_matcher_utils": (
        _PASSES, "SourcePartition check_subgraphs_connected get_source_partitions"
    ),
    "torch.fx.traceback": (_EAGER, "NodeSource NodeSourceAction{CREATE,REPLACE}"),
    "torch.export.unflatten": (_EAGER, "_AttrKind{PARAMETER,BUFFER,CONSTANT,MODULE} _assign_attr"),
    "torch._export.error": (_EAGER, "InternalError"),
    "torch._export.utils": (_EAGER, "_disable_aten_to_metadata_assertions"),
    "torch.nn.attention.experimental._scaled_dot_product_attention_quantized": (
        "taeda has no kernel of attention in 8 bits; use scaled_dot_product_attention",
        "_scaled_dot_product_attention_quantized DescaleType{PER_HEAD,PER_TENSOR}",
    ),
    "torch.testing._internal.composite_compliance": (
        "taeda keeps PyTorch's tests of its own operators out; use torch.library.opcheck",
        "CompositeCompliantTensorMode check_all_permutations check_backward_formula "
        "check_forward_ad_formula check_with_mode "
        + " ".join(
            f"{name}=torch._library.in_place.{name}"
            for name in ("is_inplace", "is_inplace_view_fn", "is_view_fn")
        ),
    ),
}  # fmt: skip
