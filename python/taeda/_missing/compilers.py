"""Compilers and what they export: names that import, and raise when called."""

from __future__ import annotations

_EAGER = "taeda has no compiler; programs run eagerly"
_EXPORT = "taeda exports no programs; keep the module and save its state_dict"
_ONNX = "taeda writes no ONNX files; export the same weights with PyTorch"
_SCRIPT = "taeda has no script compiler; call the function or module itself"
_ARCHIVE = "taeda reads and writes no script archives; use torch.save of a state_dict"
_PASSES = "taeda has no such pass over graphs; write it with torch.fx.Graph"
_SYMBOLS = "taeda computes with sizes that are numbers; use int, float and bool"
_FAKE = (
    "taeda has no tensors that stand for others; trace with torch.fx.symbolic_trace, or compute "
    "shapes on the device meta"
)
_OPERATORS = "taeda captures no control flow; call the functions in Python's loops and conditions"


def _of_jit(names: str) -> str:
    return " ".join(f"{name}=torch.jit.{name}" for name in names.split())


MODULES = {
    "torch.jit": (
        _SCRIPT,
        "CompilationUnit export_opnames last_executed_optimized_graph _get_trace_graph "
        "class:ONNXTracedModule jit_module_from_flatbuffer save_jit_module_to_flatbuffer "
        "_hide_source_ranges _set_fusion_strategy set_module",
    ),
    "torch.jit._recursive": (_SCRIPT, "create_script_module concrete_type_store wrap_cpp_module"),
    "torch.jit._script": (
        _SCRIPT,
        "*torch.jit " + _of_jit(
            "Attribute RecursiveScriptModule ScriptFunction ScriptModule interface script "
            "script_method"
        ),
    ),
    "torch.jit._trace": (
        _SCRIPT,
        "*torch.jit " + _of_jit(
            "TopLevelTracedModule TracedModule TracerWarning TracingCheckError is_tracing trace "
            "trace_module _script_if_tracing"
        ),
    ),
    "torch.jit.frontend": (_SCRIPT, "class:NotSupportedError get_jit_def get_jit_class_def"),
    "torch.jit._serialization": (_ARCHIVE, "save load"),
    "torch.jit.mobile": (
        _ARCHIVE, "LiteScriptModule _load_for_lite_interpreter _export_operator_list"
    ),
    "torch.utils.bundled_inputs": (
        "taeda has no script compiler, whose modules inputs are bundled with; save the inputs with "
        "torch.save",
        "InflatableArg augment_many_model_functions_with_bundled_inputs "
        "augment_model_with_bundled_inputs bundle_inputs bundle_large_tensor bundle_randn",
    ),
    "torch.utils.mobile_optimizer": (
        _SCRIPT, "LintCode MobileOptimizerType generate_mobile_module_lints optimize_for_mobile"
    ),
    "torch.compiler": (
        _EAGER,
        "load_cache_artifacts save_cache_artifacts CacheInfo load_compiled_function "
        "skip_all_guards_unsafe skip_guard_on_all_nn_modules_unsafe "
        "skip_guard_on_globals_unsafe skip_guard_on_inbuilt_nn_modules_unsafe "
        "keep_tensor_guards_unsafe keep_portable_guards_unsafe",
    ),
    "torch._dynamo": (
        _EAGER,
        "explain export lookup_backend on_compile_start on_compile_end replay "
        "set_stance=torch.compiler.set_stance class:patch_dynamo_config "
        "class:dont_skip_tracing class:set_recursion_limit @disable_nested_graph_breaks "
        "override_cudagraphs override_optimization_hint reset_recompile_user_contexts "
        "skip_frame step_unsupported allow_c_slot bytecode_debugger "
        "no:is_dynamo_disable_recursive",
    ),
    "torch._dynamo.decorators": (_EAGER, "*torch._dynamo"),
    "torch._dynamo.utils": (_EAGER, "compile_times set_locals_to_steal clone_input same"),
    "torch._dynamo.testing": (_EAGER, "CompileCounter CompileCounterWithBackend"),
    "torch._dynamo.backends": (_EAGER, ""),
    "torch._dynamo.backends.common": (_EAGER, "aot_autograd"),
    "torch._dynamo.backends.registry": (_EAGER, "lookup_backend"),
    "torch._dynamo.compiled_autograd": (_EAGER, "class:_enable _disable"),
    "torch._inductor": (
        _EAGER,
        "aot_compile aoti_compile_and_package compile cudagraph_mark_step_begin list_mode_options "
        "list_options standalone_compile",
    ),
    "torch._inductor.config": (
        _EAGER,
        "allow_buffer_reuse=True conv_1x1_as_mm=False coordinate_descent_tuning=False "
        "cpp_wrapper=False epilogue_fusion=True fallback_random=False force_disable_caches=False "
        "freezing=False fx_graph_cache=True inplace_buffers=True max_autotune=False def:patch "
        "max_autotune_gemm=False max_autotune_pointwise=False shape_padding=True debug=False "
        "compile_threads=1 dce=False size_asserts=True nan_asserts=False pattern_matcher=True "
        "use_mixed_mm=False coordinate_descent_check_all_directions=False "
        "joint_graph_constant_folding=True verbose_progress=False fx_graph_remote_cache=None "
        "eager_numerics=torch._inductor.config.eager_numerics "
        "triton=torch._inductor.config.triton cpp=torch._inductor.config.cpp "
        "cuda=torch._inductor.config.cuda trace=torch._inductor.config.trace",
    ),
    "torch._inductor.config.eager_numerics": (
        _EAGER,
        "division_rounding=False disable_ftz=False use_pytorch_libdevice=False",
    ),
    "torch._inductor.config.triton": (
        _EAGER,
        "cudagraphs=False cudagraph_trees=True cudagraph_skip_dynamic_graphs=False "
        "unique_kernel_names=True autotune_pointwise=True autotune_cublasLt=True "
        "dense_indexing=False max_tiles=2 persistent_reductions=True store_cubin=False "
        "multi_kernel=0 use_block_ptr=False debug_sync_graph=False debug_sync_kernel=False",
    ),
    "torch._inductor.config.cpp": (
        _EAGER,
        "threads=-1 simdlen=None min_chunk_size=512 enable_kernel_profile=False "
        "weight_prepack=True vec_isa_ok=None descriptive_names='original_aten' "
        "max_horizontal_fusion_size=16 enable_floating_point_contract_flag='off' "
        "enable_unsafe_math_opt_flag=False",
    ),
    "torch._inductor.config.cuda": (
        _EAGER, "arch=None version=None compile_opt_level='-O1' enable_cuda_lto=False"
    ),
    "torch._inductor.config.trace": (
        _EAGER, "enabled=False debug_dir=None debug_log=False info_log=False fx_graph=True"
    ),
    "torch._inductor.cpu_vec_isa": (_EAGER, "pick_vec_isa valid_vec_isa_list"),
    "torch._inductor.runtime.cache_dir_utils": (_EAGER, "cache_dir default_cache_dir"),
    "torch._inductor.utils": (_EAGER, "fresh_inductor_cache fresh_cache run_and_get_code"),
    "torch._inductor.compile_fx": (_EAGER, "compile_fx compile_fx_inner"),
    "torch._functorch": (_EAGER, ""),
    "torch._functorch.aot_autograd": (
        _EAGER, "aot_function aot_module aot_module_simplified aot_export_module make_boxed_func"
    ),
    "torch._functorch.partitioners": (_EAGER, "min_cut_rematerialization_partition"),
    "torch._guards": (
        _EAGER, "CompileContext Guard GuardBuilderBase GuardSource Source TracingContext "
        "detect_fake_mode",
    ),
    "torch._custom_ops": (
        "taeda has its own operators in one place; use torch.library",
        "custom_op impl impl_abstract impl_backward impl_save_for_backward get_ctx",
    ),
    "torch._higher_order_ops": (
        _OPERATORS,
        "associative_scan flex_attention invoke_subgraph map out_dtype scan strict_mode wrap",
    ),
    "torch._higher_order_ops.associative_scan": (_OPERATORS, "associative_scan"),
    "torch._higher_order_ops.scan": (_OPERATORS, "scan"),
    **{
        f"torch._higher_order_ops.{name}": (_OPERATORS, f"{name}=torch._higher_order_ops.{name}")
        for name in "cond invoke_subgraph map out_dtype strict_mode while_loop wrap".split()
    },
    "torch._higher_order_ops.flex_attention": (
        "taeda has no such operator; use torch.nn.attention.flex_attention",
        "flex_attention flex_attention_backward"
    ),
    "torch.export": (
        _EXPORT,
        "AdditionalInputs Constraint CustomDecompTable Dim ExportBackwardSignature "
        "ExportGraphSignature ExportedProgram FlatArgsAdapter ModuleCallEntry ModuleCallSignature "
        "ShapesCollection UnflattenedModule default_decompositions dims draft_export export "
        "load register_dataclass save unflatten",
    ),
    "torch.export.unflatten": (_EXPORT, "InterpreterModule " + " ".join(
        f"{name}=torch.export.{name}"
        for name in "FlatArgsAdapter UnflattenedModule unflatten".split()
    )),
    "torch.export.dynamic_shapes": (
        _EXPORT,
        "AdditionalInputs Constraint Dim ShapesCollection dims "
        "refine_dynamic_shapes_from_suggested_fixes",
    ),
    "torch.export.exported_program": (_EXPORT, "ExportedProgram ModuleCallEntry "
        "ModuleCallSignature default_decompositions"),
    "torch.export.graph_signature": (
        _EXPORT, "ConstantArgument ExportGraphSignature InputKind{USER_INPUT,PARAMETER,BUFFER} "
        "InputSpec OutputSpec TensorArgument CustomObjArgument ExportBackwardSignature "
        "OutputKind{USER_OUTPUT,LOSS_OUTPUT,BUFFER_MUTATION,PARAMETER_MUTATION,"
        "GRADIENT_TO_PARAMETER,GRADIENT_TO_USER_INPUT,USER_INPUT_MUTATION,TOKEN} "
        "SymBoolArgument SymFloatArgument SymIntArgument",
    ),
    "torch._export": (_EXPORT, "capture_pre_autograd_graph aot_compile"),
    "torch.onnx": (
        _ONNX,
        "InputObserver JitScalarType ONNXProgram "
        "OnnxExporterError _export export "
        "select_model_mode_for_export "
        "OperatorExportTypes{ONNX,ONNX_ATEN,ONNX_ATEN_FALLBACK,ONNX_FALLTHROUGH} "
        "TrainingMode{EVAL,PRESERVE,TRAINING} "
        "TensorProtoDataType{UNDEFINED,FLOAT,UINT8,INT8,UINT16,INT16,INT32,INT64,STRING,BOOL,"
        "FLOAT16,DOUBLE,UINT32,UINT64,COMPLEX64,COMPLEX128,BFLOAT16}",
    ),
    "torch.onnx.errors": (_ONNX, "OnnxExporterError SymbolicValueError UnsupportedOperatorError"),
    "torch.onnx.utils": (_ONNX, "export select_model_mode_for_export unconvertible_ops"),
    "torch.onnx.ops": (_ONNX, "attention rotary_embedding symbolic symbolic_multi_out"),
    "torch.onnx.verification": (_ONNX, "VerificationOptions find_mismatch verify"),
    "torch.onnx._internal": (_ONNX, ""),
    "torch.onnx._internal.exporter": (_ONNX, "ONNXProgram"),
    "torch.onnx.symbolic_helper": (
        _ONNX,
        "@parse_args @quantized_args _get_tensor_dim_size _get_tensor_sizes _maybe_get_const "
        "_unimplemented _is_none _is_value _parse_arg _unsqueeze_helper _squeeze_helper "
        "cast_pytorch_to_onnx",
    ),
    **{
        f"torch.onnx.symbolic_opset{version}": (
            _ONNX,
            "add cat clamp conv2d div embedding exp expand gather index_select linear matmul max "
            "mul pad reshape select softmax squeeze sub sum transpose unsqueeze upsample_nearest2d",
        )
        for version in range(7, 21)
    },
    "torch.fx.passes.graph_drawer": (_PASSES, "FxGraphDrawer"),
    "torch.fx.passes.infra.partitioner": (_PASSES, "CapabilityBasedPartitioner Partition"),
    "torch.fx.passes.operator_support": (_PASSES, "OperatorSupport OperatorSupportBase "
        "OpSupports any_chain chain create_op_support"),
    "torch.fx.passes.splitter_base": (_PASSES, "_SplitterBase FxNetAccNodesFinder "
        "FxNetSplitterInternalError SplitResult Subgraph generate_inputs_for_submodules"),
    "torch.fx.passes.split_utils": (_PASSES, "Component getattr_recursive "
        "move_non_tensor_nodes_on_boundary setattr_recursive split_by_tags"),
    "torch.fx.passes.tools_common": (_PASSES, "FxNetAccFusionsFinder get_acc_ops_name "
        "get_node_target is_node_output_tensor legalize_graph stable_topological_sort"),
    "torch.fx.passes.fake_tensor_prop": (_FAKE, "FakeTensorProp"),
    "torch.fx.traceback": (
        _PASSES,
        "annotate preserve_node_meta get_current_meta has_preserved_node_meta set_stack_trace",
    ),
    "torch.fx.experimental": (_PASSES, ""),
    "torch.fx.experimental.proxy_tensor": (
        _FAKE,
        "ProxyTorchDispatchMode PythonKeyTracer maybe_disable_fake_mode",
    ),
    "torch.fx.experimental.symbolic_shapes": (
        _SYMBOLS,
        "no:has_free_symbols no:has_free_unbacked_symbols ConstraintViolationError DimDynamic "
        "GuardOnDataDependentSymNode ShapeEnv "
        "StatelessSymbolicContext StrictMinMaxConstraint SymNode definitely_true "
        "free_symbols free_unbacked_symbols guard_bool guard_int guard_or_false guard_or_true "
        "guard_size_oblivious hint_int is_concrete_int statically_known_true sym_eq",
    ),
    "torch.fx.experimental.sym_node": (_SYMBOLS, "SymNode"),
    "torch.utils._sympy": (_SYMBOLS, ""),
    "torch.utils._sympy.numbers": (_SYMBOLS, "IntInfinity NegativeIntInfinity"),
    "torch.utils._sympy.value_ranges": (
        _SYMBOLS, "ValueRangeAnalysis ValueRangeError ValueRanges bound_sympy"
    ),
    "torch.fx.experimental.optimization": (
        "taeda has no layers in oneDNN's layouts; use those of torch.nn",
        "MklSubgraph UnionFind gen_mkl_autotuner modules_to_mkldnn optimize_for_inference "
        "reset_modules use_mkl_length",
    ),
    "torch.fx.experimental.unification": (_PASSES, "Var var unify"),
    "torch.fx.tensor_type": (_PASSES, "Dyn TensorType is_consistent is_more_precise"),
}  # fmt: skip
