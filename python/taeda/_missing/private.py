"""Names that begin with _, and modules of PyTorch's own making, that taeda lacks."""

from __future__ import annotations

_OPERATORS = "taeda's operators are in torch.ops.aten and torch.ops.taeda; call the public function"
_COMPILER = "taeda compiles no graphs; leave the call out"
_LIBRARIES = "taeda loads no libraries of PyTorch; leave the call out"
_FUNCTIONAL = "taeda's functional tensors are its transforms'; use torch.func.functionalize"
_NESTED = "taeda's nested tensors are made of torch.nested; use its functions"
_QUANTIZED = "taeda has no quantized tensors; train and run in bfloat16 instead"
_TESTS = "PyTorch has it for its own tests; leave the call out"
_OTHER_DEVICES = "taeda has no kernels of these libraries; call the public function"
_PRIMS = "taeda has no primitives of PyTorch's compiler; use torch.ops.aten"
_META = "taeda's operators run on the device meta by themselves; use torch.library.register_fake"
_LAZY = "taeda has no lazy devices; use 'cpu' or 'cuda'"
_SCRIPT = "taeda has no script compiler; use inspect"
_DOCS = "taeda's docstrings are in its table of operators; read __doc__"

MODULES = {
    "torch": (
        _OPERATORS,
        "_add_batch_dim _remove_batch_dim _as_tensor_fullprec _batch_norm_impl_index "
        "_compute_linear_combination _copy_from _copy_from_and_resize "
        "_cummax_helper _cummin_helper _efficientzerotensor _functional_assert_async "
        "_functional_assert_scalar _fused_dropout _fused_sdp_choice "
        "_fw_primal_copy _histogramdd_bin_edges _histogramdd_from_bin_cts "
        "_histogramdd_from_bin_tensors _indices_copy _lazy_clone _linalg_check_errors "
        "_make_dual _make_dual_copy _unpack_dual "
        "_mirror_autograd_meta_to _native_multi_head_attention _philox_key_fold_in "
        "_philox_key_split _philox_normal_ _philox_uniform_ _rowwise_prune "
        "_scaled_grouped_mm _scaled_grouped_mm_v2 _sobol_engine_draw "
        "_sobol_engine_ff_ _sobol_engine_initialize_state_ _sobol_engine_scramble_ "
        "_sparse_broadcast_to _sparse_broadcast_to_copy _sparse_csr_prod _sparse_csr_sum "
        "_sparse_log_softmax_backward_data _sparse_softmax_backward_data "
        "_transform_bias_rescale_qkv _transformer_encoder_layer_fwd "
        "_validate_compressed_sparse_indices _values_copy no:_is_zerotensor",
        _COMPILER,
        "class:_TorchCompileAOTInductorWrapper class:_TorchCompileInductorWrapper "
        "class:_TorchCompileWrapper _TritonLibrary _constrain_as_size _awaits=torch._awaits "
        "_functional_sym_constrain_range _functional_sym_constrain_range_for_size _make_dep_token "
        "_custom_op=torch._custom_op _lazy_modules",
        _LIBRARIES,
        "_get_cuda_dep_paths _get_origin _import_device_backends _import_dotted_name "
        "_initExtension _load_global_deps _preload_cuda_deps _preload_cuda_lib "
        "_register_device_module no:_running_with_deploy "
        "no:_is_device_backend_autoload_enabled _from_blob "
        "_warn_typed_storage_removal def:_overload "
        "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
        _FUNCTIONAL,
        "_disable_functionalization _enable_functionalization _freeze_functional_tensor "
        "_from_functional_tensor _functionalize_are_all_mutations_hidden_from_autograd "
        "_functionalize_are_all_mutations_under_no_grad_or_inference_mode "
        "_functionalize_commit_update _functionalize_enable_reapply_views "
        "_functionalize_get_storage_size _functionalize_has_data_mutation "
        "_functionalize_has_metadata_mutation _functionalize_inductor_storage_resized_counter "
        "_functionalize_is_multi_output_view _functionalize_is_symbolic "
        "_functionalize_mark_mutation_hidden_from_autograd _functionalize_mark_storage_changed "
        "_functionalize_mutation_counter _functionalize_replace "
        "_functionalize_storage_changed_counter _functionalize_sync _functionalize_unsafe_set "
        "_functionalize_was_inductor_storage_resized _functionalize_was_storage_changed "
        "no:_is_functional_tensor no:_is_functional_tensor_base _propagate_xla_data _sync "
        "_to_functional_tensor",
        _NESTED,
        "_nested_compute_contiguous_strides_offsets _nested_from_padded "
        "_nested_from_padded_and_nested_example _nested_from_padded_tensor "
        "_nested_get_jagged_dummy _nested_get_lengths _nested_get_max_seqlen "
        "_nested_get_min_seqlen _nested_get_offsets _nested_get_ragged_idx _nested_get_values "
        "_nested_get_values_copy _nested_tensor_from_mask _nested_tensor_from_mask_left_aligned "
        "_nested_tensor_from_tensor_list _nested_tensor_softmax_with_shape "
        "_nested_view_from_buffer _nested_view_from_buffer_copy _nested_view_from_jagged "
        "_nested_view_from_jagged_copy",
        _QUANTIZED,
        "_choose_qparams_per_tensor _convert_weight_to_int4pack "
        "_convert_weight_to_int4pack_for_cpu _dyn_quant_matmul_4bit _dyn_quant_pack_4bit_weight "
        "_empty_affine_quantized _empty_per_channel_affine_quantized "
        "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams "
        "_make_per_channel_quantized_tensor _make_per_tensor_quantized_tensor "
        "_mixed_dtypes_linear _saturate_weight_to_fp16 _weight_int4pack_mm "
        "_weight_int4pack_mm_for_cpu _weight_int4pack_mm_with_scales_and_zeros "
        "_weight_int8pack_mm _wrapped_linear_prepack _wrapped_quantized_linear_prepacked",
        _TESTS,
        "_foobar _test_autograd_multiple_dispatch _test_autograd_multiple_dispatch_view "
        "_test_autograd_multiple_dispatch_view_copy _test_check_tensor _test_functorch_fallback "
        "_test_parallel_materialize _test_serialization_subcmul",
        _OTHER_DEVICES,
        "_cslt_compress _cslt_sparse_mm _cslt_sparse_mm_search _cudnn_ctc_loss "
        "_cudnn_init_dropout_state _cudnn_rnn _cudnn_rnn_flatten_weight _cufft_clear_plan_cache "
        "_cufft_get_plan_cache_max_size _cufft_get_plan_cache_size _cufft_set_plan_cache_max_size "
        "_fill_mem_eff_dropout_mask_ _flash_attention_forward_no_dropout_inplace _lstm_mps "
        "_mkldnn_reshape _mkldnn_transpose _mkldnn_transpose_ _mps_convolution "
        "_mps_convolution_transpose _nnpack_spatial_convolution "
        "_scaled_dot_product_attention_math_for_mps _sparse_semi_structured_addmm "
        "_sparse_semi_structured_apply _sparse_semi_structured_apply_dense "
        "_sparse_semi_structured_linear _sparse_semi_structured_mm _sparse_semi_structured_tile "
        "_to_sparse_semi_structured _triton_multi_head_attention _triton_scaled_dot_attention "
        "no:_use_cudnn_ctc_loss no:_use_cudnn_rnn_flatten_weight no:_use_miopen_ctc_loss",
    ),
    "torch._meta_registrations": (_META, "register_meta elementwise_meta"),
    "torch._prims": (
        _PRIMS,
        "TensorMeta _make_prim broadcast_in_dim collapse collapse_view convert_element_type "
        "device_put expand_dims iota shift_right_logical split_dim torch_var view_element_type "
        "view_of",
    ),
    "torch._lazy": (_LAZY, "get_tensor_id mark_step save sync_multi to_cpu wait_device_ops"),
    "torch._lazy.metrics": (_LAZY, "counter_names counter_value metrics_report reset"),
    "torch._sources": (
        _SCRIPT,
        "ParsedDef SourceContext fake_range get_source_lines_and_file make_source_context "
        "normalize_source_lines parse_def",
    ),
    "torch._size_docs": (_DOCS, "add_docstr_all"),
    "torch._storage_docs": (_DOCS, "add_docstr_all"),
    "torch._torch_docs": (_DOCS, "merge_dicts parse_kwargs"),
    "torch._classes": (_LIBRARIES, "class:_ClassNamespace class:_Classes classes=torch.classes"),
    "torch._custom_op": (_OPERATORS, ""),
    "torch._dispatch": (_COMPILER, ""),
    "torch._dispatch.python": (
        _COMPILER,
        "all_py_loaded_overloads enable_crossref_functionalize make_crossref_functionalize "
        "suspend_functionalization",
    ),
    "torch._awaits": (_SCRIPT, "class:_Await"),
    "torch._appdirs": (
        "taeda keeps no folders of its own; use platformdirs",
        "AppDirs site_config_dir site_data_dir user_cache_dir user_config_dir user_data_dir "
        "user_log_dir user_state_dir",
    ),
    "torch._environment": ("", "no:is_fbcode no:is_prod"),
    "torch._numpy": ("taeda has no NumPy of tensors; use numpy, or torch's functions", ""),
    "torch._strobelight": (_COMPILER, ""),
    "torch._thread_safe_fork": (_LIBRARIES, ""),
    "torch._vendor": (_LIBRARIES, ""),
    "torch._vendor.packaging": (_LIBRARIES, ""),
    "torch._vendor.packaging.version": (
        "taeda brings no copy of packaging; use packaging.version",
        "Version parse InvalidVersion",
    ),
    "torch._subclasses.functional_tensor": (
        _FUNCTIONAL,
        "BaseFunctionalizeAPI CppFunctionalizeAPI FunctionalTensor FunctionalTensorMode "
        "FunctorchFunctionalizeAPI PythonFunctionalizeAPI disable_functional_mode "
        "dispatch_functionalize mb_unwrap_functional_tensor",
    ),
    "torch.accelerator.memory": (
        "",
        "empty_cache=torch.accelerator.empty_cache memory_stats=torch.accelerator.memory_stats "
        "memory_allocated=torch.accelerator.memory_allocated "
        "max_memory_allocated=torch.accelerator.max_memory_allocated "
        "memory_reserved=torch.accelerator.memory_reserved "
        "max_memory_reserved=torch.accelerator.max_memory_reserved "
        "reset_accumulated_memory_stats=torch.accelerator.reset_accumulated_memory_stats "
        "reset_peak_memory_stats=torch.accelerator.reset_peak_memory_stats",
    ),
    "torch.contrib": (_LIBRARIES, ""),
    "torch.csrc": (_LIBRARIES, ""),
    "torch.share": (_LIBRARIES, ""),
    "torch.nativert": (_LIBRARIES, ""),
    "torch.cuda._utils": (
        "taeda loads no kernels of a program's own by this name; use torch.ops.load_library",
        "class:_CudaKernel class:_CudaModule _cuda_load_module _nvrtc_compile _check_cuda "
        "_get_device_index=torch._utils._get_device_index",
    ),
    "torch.distributed._shard.sharded_tensor": (
        "taeda does not shard tensors over processes; keep them whole in each",
        "empty full init_from_local_shards ones rand randn zeros @custom_sharded_op_impl "
        "pre_load_state_dict_hook state_dict_hook ShardedTensor=torch.distributed._shard."
        "sharded_tensor.api.ShardedTensor",
    ),
    "torch.distributed._shard.sharded_tensor.api": (
        "taeda does not shard tensors over processes; keep them whole in each",
        "ShardedTensor",
    ),
    "torch.nn.backends.thnn": (
        "torch.nn calls its operators itself; leave the backend out",
        "_get_thnn_function_backend",
    ),
    "torch.nn.cpp": (
        "taeda's C++ modules are no Python modules; write a class of torch.nn.Module",
        "ModuleWrapper OrderedDictWrapper",
    ),
    "torch.nn.utils._expanded_weights": (
        "taeda has no weights of this kind; use torch.func.vmap(torch.func.grad(f))",
        "ExpandedWeight",
    ),
    "torch.optim._multi_tensor": (
        "",
        "ASGD=torch.optim.ASGD Adadelta=torch.optim.Adadelta Adagrad=torch.optim.Adagrad "
        "Adam=torch.optim.Adam AdamW=torch.optim.AdamW Adamax=torch.optim.Adamax "
        "NAdam=torch.optim.NAdam RAdam=torch.optim.RAdam RMSprop=torch.optim.RMSprop "
        "Rprop=torch.optim.Rprop SGD=torch.optim.SGD",
    ),
    "torch.utils._config_module": (_COMPILER, "Config ConfigModule install_config_module"),
    "torch.utils._import_utils": (
        "taeda looks for no packages by this; use importlib.util.find_spec",
        "_check_module_exists dill_available import_dill",
    ),
    "torch.utils._stats": (_COMPILER, "@count count_label"),
    "torch.utils._typing_utils": (
        "taeda copies no annotations; say assert x is not None",
        "@copy_func_params @copy_method_params not_none",
    ),
    "torch.utils.hipify": (_LIBRARIES, ""),
    "torch.utils.viz": (_COMPILER, ""),
    "torch.utils.viz._cycles": (
        "taeda draws no cycles of objects; use gc and objgraph",
        "create_graph observe_garbage observe_tensor_cycles to_dot to_html warn_tensor_cycles",
    ),
}
