"""Parts of PyTorch, each a few modules, that taeda does not have."""

from __future__ import annotations

_QUANTIZATION = "taeda has no quantized tensors; train and run in bfloat16 instead"
_SPARSE = "taeda has no kernels for it; use torch.mm, or a dense tensor"
_DTYPES = (
    "int1 int2 int3 int4 int5 int6 int7 uint1 uint2 uint3 uint4 uint5 uint6 uint7 "
    "bits1x8 bits2x4 bits4x2 bits8 bits16 qint8 qint32 quint8 quint4x2 quint2x4"
)
_FAKE = "taeda compares no fake with real results; use torch._subclasses.FakeTensorMode"
_CORE = "taeda's core has no such part; leave the call out"
_PACKAGES = "taeda writes no packages; use torch.save and torch.load"

_OBSERVERS = (
    "FakeQuantize FakeQuantizeBase FixedQParamsFakeQuantize FixedQParamsObserver HistogramObserver "
    "FusedMovingAvgObsFakeQuantize MinMaxObserver MovingAverageMinMaxObserver "
    "MovingAveragePerChannelMinMaxObserver NoopObserver ObserverBase PerChannelMinMaxObserver "
    "PlaceholderObserver RecordingObserver ReuseInputObserver UniformQuantizationObserverBase "
    "default_debug_observer default_dynamic_quant_observer default_fake_quant "
    "default_histogram_observer default_observer default_per_channel_weight_fake_quant "
    "default_per_channel_weight_observer default_placeholder_observer default_weight_fake_quant "
    "default_weight_observer disable_fake_quant disable_observer enable_fake_quant enable_observer "
    "get_observer_state_dict load_observer_state_dict "
)
_STEPS = (
    "DeQuantStub QConfig QConfigDynamic QConfigMapping QuantStub QuantType{DYNAMIC,STATIC,QAT,"
    "WEIGHT_ONLY} QuantWrapper add_quant_dequant convert default_dynamic_qconfig default_eval_fn "
    "default_qat_qconfig default_qconfig float16_dynamic_qconfig "
    "float_qparams_weight_only_qconfig fuse_modules fuse_modules_qat get_default_qat_qconfig "
    "get_default_qat_qconfig_mapping get_default_qconfig get_default_qconfig_mapping "
    "get_default_dynamic_quant_module_mappings get_default_static_quant_module_mappings "
    "per_channel_dynamic_qconfig prepare prepare_qat propagate_qconfig_ quantize quantize_dynamic "
    "quantize_jit quantize_dynamic_jit quantize_qat swap_module"
)
_LAYERS = (
    "BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d "
    "DeQuantize "
    "Dropout ELU Embedding EmbeddingBag FXFloatFunctional FloatFunctional GroupNorm Hardswish "
    "InstanceNorm1d InstanceNorm2d InstanceNorm3d LSTM LayerNorm LeakyReLU Linear "
    "MultiheadAttention PReLU QFunctional Quantize ReLU6 Sigmoid Softmax"
)

MODULES = {
    # Quantization
    "torch.ao": (_QUANTIZATION, "quantization=torch.ao.quantization nn=torch.ao.nn"),
    "torch.ao.nn": (_QUANTIZATION, ""),
    "torch.ao.quantization": (_QUANTIZATION, _OBSERVERS + _STEPS),
    "torch.ao.quantization.observer": (_QUANTIZATION, _OBSERVERS),
    "torch.ao.quantization.fake_quantize": (_QUANTIZATION, _OBSERVERS),
    "torch.ao.quantization.qconfig": (
        _QUANTIZATION, "QConfig default_qconfig get_default_qconfig get_default_qat_qconfig"
    ),
    "torch.ao.quantization.quantize_fx": (
        _QUANTIZATION, "convert_fx convert_to_reference_fx fuse_fx prepare_fx prepare_qat_fx"
    ),
    "torch.ao.quantization.stubs": (_QUANTIZATION, "DeQuantStub QuantStub QuantWrapper"),
    "torch.ao.nn.quantized": (_QUANTIZATION, _LAYERS),
    "torch.ao.nn.quantized.dynamic": (
        _QUANTIZATION, "Conv1d Conv2d GRU GRUCell LSTM LSTMCell Linear RNNCell"
    ),
    "torch.ao.nn.quantized.functional": (
        _QUANTIZATION,
        "adaptive_avg_pool2d adaptive_avg_pool3d avg_pool2d avg_pool3d celu clamp conv1d conv2d "
        "conv3d elu hardsigmoid hardswish hardtanh interpolate leaky_relu linear max_pool1d "
        "max_pool2d threshold upsample upsample_bilinear upsample_nearest",
    ),
    "torch.ao.nn.quantized.reference": (
        _QUANTIZATION,
        "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d Embedding "
        "EmbeddingBag GRU GRUCell LSTM LSTMCell Linear RNNCell",
    ),
    "torch.ao.nn.intrinsic.quantized": (
        _QUANTIZATION,
        "BNReLU2d BNReLU3d ConvAdd2d ConvAddReLU2d ConvReLU1d ConvReLU2d ConvReLU3d "
        "LinearLeakyReLU LinearReLU LinearTanh",
    ),
    "torch.ao.nn.sparse": (_QUANTIZATION, ""),
    "torch.ao.nn.sparse.quantized": (_QUANTIZATION, "Linear LinearPackedParams"),
    "torch.ao.nn.qat": (_QUANTIZATION, "Conv1d Conv2d Conv3d Embedding EmbeddingBag Linear"),
    "torch.ao.nn.intrinsic": (
        _QUANTIZATION,
        "BNReLU2d BNReLU3d ConvBn1d ConvBn2d ConvBn3d ConvBnReLU1d ConvBnReLU2d ConvBnReLU3d "
        "ConvAdd2d ConvAddReLU2d ConvReLU1d ConvReLU2d ConvReLU3d LinearBn1d LinearLeakyReLU "
        "LinearReLU LinearTanh",
    ),
    "torch.ao.nn.intrinsic.qat": (_QUANTIZATION, "LinearBn1d"),
    "torch.ao.nn.quantizable": (_QUANTIZATION, "LSTM LSTMCell MultiheadAttention"),
    "torch.quantization": (_QUANTIZATION, "*torch.ao.quantization"),
    "torch.quantization.observer": (_QUANTIZATION, "*torch.ao.quantization.observer"),
    "torch.quantization.fake_quantize": (_QUANTIZATION, "*torch.ao.quantization.fake_quantize"),
    "torch.quantization.quantize_fx": (_QUANTIZATION, "*torch.ao.quantization.quantize_fx"),
    "torch.nn.quantized": (_QUANTIZATION, "*torch.ao.nn.quantized"),
    "torch.nn.quantized.functional": (_QUANTIZATION, "*torch.ao.nn.quantized.functional"),
    "torch.nn.intrinsic.quantized": (_QUANTIZATION, "*torch.ao.nn.intrinsic.quantized"),
    "torch.nn.quantized.dynamic": (_QUANTIZATION, "*torch.ao.nn.quantized.dynamic"),
    "torch.nn.qat": (_QUANTIZATION, "*torch.ao.nn.qat"),
    "torch.nn.intrinsic": (_QUANTIZATION, "*torch.ao.nn.intrinsic"),
    "torch.nn.quantizable": (_QUANTIZATION, "*torch.ao.nn.quantizable"),
    # Layouts
    "torch.sparse": (_SPARSE, "spsolve"),
    # Others
    "torch": (
        "taeda computes with sizes that are numbers; use int, float and bool",
        "torch=torch ScriptModule=torch.jit.ScriptModule ScriptFunction=torch.jit.ScriptFunction "
        "CompilationUnit=torch.jit.CompilationUnit SymBool SymFloat SymInt",
        "taeda resizes no sparse tensors; make a new one with torch.sparse_coo_tensor",
        "resize_as_sparse_",
        "taeda has no inverse of views; use torch.slice_scatter",
        "slice_inverse",
        "taeda has one norm; use torch.linalg.vector_norm",
        "native_norm",
        _CORE,
        "class:ExcludeDispatchKeyGuard def:prepare_multiprocessing_environment "
        "thread_safe_generator",
        "taeda has no tensors of this dtype; use torch.uint8 for the bytes",
        " ".join(f"dtype:{name}" for name in _DTYPES.split()),
    ),
    "torch.classes": ("taeda runs no classes of TorchScript; use Python's", "load_library"),
    "torch._C": (
        _CORE,
        "_DisableTorchDispatch Graph Node "
        "Value _jit_get_operation _set_math_sdp_allow_fp16_bf16_reduction",
    ),
    "torch.xpu": (
        "taeda has no XPU devices; ask torch.xpu.is_available() before",
        "Event Stream StreamContext XPUGraph device device_of graph stream",
    ),
    "torch.mps": (
        "taeda has no MPS devices; ask torch.mps.is_available() before",
        "Event",
    ),
    "torch.mtia": (
        "taeda has no MTIA devices; ask torch.mtia.is_available() before",
        "Event Stream StreamContext device",
    ),
    "torch.monitor": (
        "taeda keeps no counters; use torch.profiler",
        "Aggregation{VALUE,MEAN,COUNT,SUM,MAX,MIN} Event EventHandlerHandle Stat "
        "TensorboardEventHandler log_event register_event_handler unregister_event_handler "
        + " ".join(
            f"{name}=torch.monitor.Aggregation.{name}"
            for name in "VALUE MEAN COUNT SUM MAX MIN".split()
        ),
    ),
    "torch.package": (
        _PACKAGES,
        "Directory EmptyMatchError GlobGroup Importer ObjMismatchError ObjNotFoundError "
        "OrderedImporter PackageExporter PackageImporter PackagingError find_file_dependencies "
        "is_from_package",
    ),
    "torch.package.find_file_dependencies": (_PACKAGES, "find_files_source_depends_on"),
    "torch.numa.binding": (
        "taeda binds no threads; use numactl",
        "AffinityMode{NODE,SOCKET,EXCLUSIVE,CORE_COMPLEX} NumaOptions",
    ),
    "torch._subclasses": (_FAKE, "CrossRefFakeMode"),
    "torch.utils.cpp_extension": (
        "taeda compiles no extensions of PyTorch; its own are shared libraries with a TD_LIBRARY, "
        "loaded by torch.ops.load_library",
        "BuildExtension.with_options CUDAExtension CppExtension CUDA_HOME=None include_paths "
        "is_ninja_available library_paths load load_inline verify_ninja_availability",
    ),
}  # fmt: skip
