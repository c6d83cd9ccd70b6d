"""Functions of torch's own for libraries and number formats that taeda does not use."""

from __future__ import annotations

_QUANTIZATION = "taeda has no quantized tensors; train and run in bfloat16 instead"
_LIBRARY = "taeda does not call this library; use the function of torch.nn.functional"
_SCRIPT = "taeda has no script compiler; what it would compile runs eagerly"
_SYMBOLS = "taeda computes with sizes that are numbers; use int, float and bool"

MODULES = {
    "torch": (
        _QUANTIZATION,
        "choose_qparams_optimized empty_quantized fbgemm_linear_fp16_weight "
        "fbgemm_linear_fp16_weight_fp32_activation fbgemm_linear_int8_weight "
        "fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight "
        "fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix int_repr q_per_channel_axis "
        "q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point quantize_per_channel "
        "quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm quantized_gru "
        "quantized_gru_cell quantized_lstm quantized_lstm_cell quantized_max_pool1d "
        "quantized_max_pool2d quantized_max_pool3d quantized_rnn_relu_cell quantized_rnn_tanh_cell "
        "QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage QUInt8Storage dtype:bit",
        _LIBRARY,
        "cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution "
        "cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose "
        "cudnn_grid_sampler no:cudnn_is_acceptable miopen_batch_norm miopen_convolution "
        "miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose "
        "miopen_ctc_loss miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d "
        "mkldnn_convolution mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d "
        "mkldnn_rnn_layer",
        "taeda has no parts of it; use torch.nn.functional.batch_norm",
        "batch_norm_backward_elemt batch_norm_backward_reduce batch_norm_elemt "
        "batch_norm_gather_stats batch_norm_gather_stats_with_counts batch_norm_stats "
        "batch_norm_update_stats",
        _SCRIPT,
        "AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig BenchmarkExecutionStats "
        "Block BoolType BufferDict CallStack Capsule ClassType Code CompleteArgumentSpec "
        "ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable "
        "DeserializationStorageContext DeviceObjType DictType EnumType ErrorReport ExecutionPlan "
        "FatalError FileCheck FloatType FunctionSchema FutureType Gradient Graph "
        "GraphExecutorState IODescriptor InferredType IntType InterfaceType JITException ListType "
        "LiteScriptModule LockingLogger LoggerBase ModuleDict Node NoneType NoopLogger NumberType "
        "OperatorInfo OptionalType ParameterDict PyObjectType RRefType ScriptClass "
        "ScriptClassFunction ScriptDict ScriptDictIterator ScriptDictKeyIterator ScriptList "
        "ScriptListIterator ScriptMethod ScriptModuleSerializer ScriptObject ScriptObjectProperty "
        "SerializationStorageContext StaticModule StreamObjType StringType SymBoolType SymIntType "
        "TensorType ThroughputBenchmark TracingState TupleType Type UnionType Use Value "
        "import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir "
        "parse_schema parse_type_comment unify_type_list",
        _SYMBOLS,
        "sym_constrain_range sym_constrain_range_for_size sym_fresh_size",
        "taeda has no devices of this kind; use get_autocast_dtype(device_type) and the like",
        "get_autocast_ipu_dtype get_autocast_xla_dtype is_autocast_ipu_enabled "
        "is_autocast_xla_enabled set_autocast_ipu_dtype set_autocast_ipu_enabled "
        "set_autocast_xla_dtype set_autocast_xla_enabled",
    ),
}  # fmt: skip
