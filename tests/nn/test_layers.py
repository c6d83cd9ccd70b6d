"""Every layer against PyTorch's: initial weights, repr, output and gradients."""

import pytest

import taeda

IMAGE = (2, 4, 8, 8)
SIGNAL = (2, 4, 10)
VOLUME = (2, 4, 5, 6, 6)
ROWS = (5, 6)

# (name, arguments, keyword arguments, shapes of the inputs)
LAYERS = [
    ("Identity", (), {}, [ROWS]),
    ("Linear", (6, 3), {}, [ROWS]),
    ("Linear", (6, 3), {"bias": False}, [(2, 3, 6)]),
    ("Bilinear", (6, 4, 3), {}, [ROWS, (5, 4)]),
    ("Conv1d", (4, 6, 3), {"padding": 1}, [SIGNAL]),
    ("Conv1d", (4, 6, 3), {"padding": "same", "dilation": 2}, [SIGNAL]),
    ("Conv2d", (4, 6, 3), {"stride": 2, "padding": 1}, [IMAGE]),
    ("Conv2d", (4, 8, (3, 2)), {"groups": 2, "bias": False}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": 2, "padding_mode": "reflect"}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "circular"}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"padding": "same", "padding_mode": "replicate"}, [IMAGE]),
    ("Conv3d", (4, 2, 3), {}, [VOLUME]),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2}, [SIGNAL]),
    ("ConvTranspose2d", (4, 6, 4), {"stride": 2, "padding": 1}, [IMAGE]),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "output_padding": 1, "groups": 2}, [IMAGE]),
    ("ConvTranspose3d", (4, 2, 2), {}, [VOLUME]),
    ("BatchNorm1d", (6,), {}, [ROWS]),
    ("BatchNorm1d", (4,), {"momentum": None}, [SIGNAL]),
    ("BatchNorm2d", (4,), {}, [IMAGE]),
    ("BatchNorm2d", (4,), {"affine": False}, [IMAGE]),
    ("BatchNorm2d", (4,), {"track_running_stats": False}, [IMAGE]),
    ("BatchNorm3d", (4,), {"eps": 1e-3}, [VOLUME]),
    ("InstanceNorm1d", (4,), {}, [SIGNAL]),
    ("InstanceNorm2d", (4,), {"affine": True, "track_running_stats": True}, [IMAGE]),
    ("InstanceNorm3d", (4,), {"affine": True}, [VOLUME]),
    ("LayerNorm", (6,), {}, [ROWS]),
    ("LayerNorm", ([8, 8],), {"bias": False}, [IMAGE]),
    ("GroupNorm", (2, 4), {}, [IMAGE]),
    ("RMSNorm", (6,), {}, [ROWS]),
    ("LocalResponseNorm", (2,), {}, [IMAGE]),
    ("LocalResponseNorm", (3,), {}, [SIGNAL]),
    ("MaxPool1d", (2,), {}, [SIGNAL]),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1}, [IMAGE]),
    ("MaxPool2d", (2,), {"return_indices": True}, [IMAGE]),
    ("MaxPool3d", (2,), {}, [VOLUME]),
    ("AvgPool1d", (2,), {}, [SIGNAL]),
    ("AvgPool2d", (3,), {"stride": 2, "padding": 1, "count_include_pad": False}, [IMAGE]),
    ("AvgPool3d", (2,), {}, [VOLUME]),
    ("LPPool1d", (2, 3), {}, [SIGNAL]),
    ("LPPool2d", (2, 2), {"stride": 2}, [IMAGE]),
    ("AdaptiveAvgPool1d", (3,), {}, [SIGNAL]),
    ("AdaptiveAvgPool2d", ((3, None),), {}, [IMAGE]),
    ("AdaptiveAvgPool2d", (1,), {}, [IMAGE]),
    ("AdaptiveAvgPool3d", (2,), {}, [VOLUME]),
    ("AdaptiveMaxPool1d", (3,), {}, [SIGNAL]),
    ("AdaptiveMaxPool2d", (3,), {"return_indices": True}, [IMAGE]),
    ("AdaptiveMaxPool3d", (2,), {}, [VOLUME]),
    ("Flatten", (), {}, [IMAGE]),
    ("Unflatten", (1, (2, 3)), {}, [ROWS]),
    ("PixelShuffle", (2,), {}, [IMAGE]),
    ("PixelUnshuffle", (2,), {}, [IMAGE]),
    ("ChannelShuffle", (2,), {}, [IMAGE]),
    ("Upsample", (), {"scale_factor": 2}, [IMAGE]),
    ("Upsample", (), {"size": (5, 7), "mode": "bilinear", "align_corners": True}, [IMAGE]),
    ("Unfold", (3,), {"padding": 1}, [IMAGE]),
    ("Fold", ((6, 6), 3), {}, [(2, 18, 16)]),
    ("ZeroPad2d", ((1, 2, 0, 1),), {}, [IMAGE]),
    ("ConstantPad1d", (2, 1.5), {}, [SIGNAL]),
    ("ReflectionPad1d", (2,), {}, [SIGNAL]),
    ("ReflectionPad2d", (1,), {}, [IMAGE]),
    ("ReplicationPad2d", ((1, 0, 2, 1),), {}, [IMAGE]),
    ("ReplicationPad3d", (1,), {}, [VOLUME]),
    ("CircularPad2d", (1,), {}, [IMAGE]),
    ("CosineSimilarity", (), {}, [ROWS, ROWS]),
    ("PairwiseDistance", (), {"p": 2.0}, [ROWS, ROWS]),
    ("Threshold", (0.1, 20.0), {}, [ROWS]),
    ("ReLU", (), {}, [ROWS]),
    ("ReLU6", (), {}, [ROWS]),
    ("Hardtanh", (-0.5, 0.5), {}, [ROWS]),
    ("Sigmoid", (), {}, [ROWS]),
    ("Hardsigmoid", (), {}, [ROWS]),
    ("Tanh", (), {}, [ROWS]),
    ("SiLU", (), {}, [ROWS]),
    ("Mish", (), {}, [ROWS]),
    ("Hardswish", (), {}, [ROWS]),
    ("ELU", (), {"alpha": 0.7}, [ROWS]),
    ("CELU", (), {"alpha": 0.7}, [ROWS]),
    ("SELU", (), {}, [ROWS]),
    ("GLU", (), {}, [ROWS]),
    ("GELU", (), {}, [ROWS]),
    ("GELU", ("tanh",), {}, [ROWS]),
    ("Hardshrink", (), {}, [ROWS]),
    ("LeakyReLU", (0.2,), {}, [ROWS]),
    ("LogSigmoid", (), {}, [ROWS]),
    ("Softplus", (), {"beta": 2.0}, [ROWS]),
    ("Softshrink", (), {}, [ROWS]),
    ("PReLU", (4,), {}, [IMAGE]),
    ("Softsign", (), {}, [ROWS]),
    ("Tanhshrink", (), {}, [ROWS]),
    ("Softmin", (), {"dim": 1}, [ROWS]),
    ("Softmax", (), {"dim": 1}, [ROWS]),
    ("Softmax2d", (), {}, [IMAGE]),
    ("LogSoftmax", (), {"dim": 0}, [ROWS]),
    ("Dropout", (0.3,), {}, [ROWS]),
    ("Dropout1d", (0.3,), {}, [SIGNAL]),
    ("Dropout2d", (0.3,), {}, [IMAGE]),
    ("Dropout3d", (0.3,), {}, [VOLUME]),
    ("AlphaDropout", (0.3,), {}, [ROWS]),
    ("FeatureAlphaDropout", (0.3,), {}, [IMAGE]),
    ("RReLU", (), {}, [ROWS]),
    ("RNNCell", (6, 3), {"nonlinearity": "relu"}, [ROWS]),
    ("LSTMCell", (6, 3), {}, [ROWS]),
    ("GRUCell", (6, 3), {"bias": False}, [ROWS]),
    ("RNN", (6, 3), {"num_layers": 2}, [(4, 5, 6)]),
    ("LSTM", (6, 3), {"num_layers": 2, "bidirectional": True}, [(4, 5, 6)]),
    ("LSTM", (6, 4), {"proj_size": 2, "batch_first": True}, [(4, 5, 6)]),
    ("LSTM", (6, 4), {}, [(5, 6)]),
    ("GRU", (6, 3), {"num_layers": 2, "bidirectional": True, "batch_first": True}, [(4, 5, 6)]),
    ("MultiheadAttention", (6, 2), {}, [(4, 3, 6)] * 3),
    ("MultiheadAttention", (6, 2), {"batch_first": True, "add_bias_kv": True}, [(4, 3, 6)] * 3),
    ("MultiheadAttention", (6, 2), {"kdim": 4, "vdim": 5}, [(4, 3, 6), (5, 3, 4), (5, 3, 5)]),
    ("MultiheadAttention", (6, 3), {"add_zero_attn": True, "dropout": 0.2}, [(4, 6)] * 3),
    ("TransformerEncoderLayer", (6, 2, 12), {"dropout": 0.0}, [(4, 3, 6)]),
    ("TransformerEncoderLayer", (6, 2, 12), {"norm_first": True, "dropout": 0.1}, [(4, 3, 6)]),
    ("TransformerDecoderLayer", (6, 2, 12, 0.0, "gelu"), {}, [(4, 3, 6), (5, 3, 6)]),
    ("Transformer", (6, 2, 2, 2, 12, 0.0), {}, [(4, 3, 6), (5, 3, 6)]),
]


def _tensors(value):
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in _tensors(item)]
    return [value]


@pytest.mark.parametrize("name, args, kwargs, shapes", LAYERS, ids=lambda v: str(v)[:40])
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_layer_equals_pytorchs(oracle, name, args, kwargs, shapes, training):
    torch = oracle.torch
    torch.manual_seed(3)
    expected_layer = getattr(torch.nn, name)(*args, **kwargs).train(training)
    taeda.manual_seed(3)
    layer = getattr(taeda.nn, name)(*args, **kwargs).train(training)

    assert repr(layer) == repr(expected_layer)
    expected_state = expected_layer.state_dict()
    assert list(layer.state_dict()) == list(expected_state)
    for key, value in layer.state_dict().items():
        oracle.assert_same(value, expected_state[key], rtol=0, atol=1e-7)

    their_inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    inputs = [oracle.ours(x).requires_grad_() for x in their_inputs]
    torch.manual_seed(5)
    expected = expected_layer(*their_inputs)
    taeda.manual_seed(5)
    actual = layer(*inputs)
    oracle.assert_same(actual, expected, rtol=1e-4, atol=1e-5)

    outputs = [t for t in _tensors(expected) if t is not None and t.requires_grad]
    if not outputs:
        return
    sum((t * torch.arange(t.numel()).view(t.shape) * 0.01).sum() for t in outputs).backward()
    ours = [t for t in _tensors(actual) if t is not None and t.requires_grad]
    sum((t * taeda.arange(t.numel()).view(t.shape) * 0.01).sum() for t in ours).backward()
    for x, e in zip(inputs, their_inputs):
        oracle.assert_same(x.grad, e.grad, rtol=1e-3, atol=1e-4)
    for p, e in zip(layer.parameters(), expected_layer.parameters()):
        oracle.assert_same(p.grad, e.grad, rtol=1e-3, atol=2e-4)
    for b, e in zip(layer.buffers(), expected_layer.buffers()):
        oracle.assert_same(b, e)


def test_embedding_equals_pytorchs(oracle):
    torch = oracle.torch
    indices = [[1, 2, 4], [0, 2, 2]]
    for kwargs in ({}, {"padding_idx": 2}, {"padding_idx": -1}, {"max_norm": 1.0}):
        torch.manual_seed(0)
        theirs = torch.nn.Embedding(5, 3, **kwargs)
        taeda.manual_seed(0)
        ours = taeda.nn.Embedding(5, 3, **kwargs)
        assert repr(ours) == repr(theirs)
        oracle.assert_same(ours.weight, theirs.weight)
        expected = theirs(torch.tensor(indices))
        actual = ours(taeda.tensor(indices))
        oracle.assert_same(actual, expected)
        expected.sum().backward()
        actual.sum().backward()
        oracle.assert_same(ours.weight.grad, theirs.weight.grad)
        oracle.assert_same(ours.weight, theirs.weight)  # max_norm changes it


def test_embedding_from_pretrained_is_frozen():
    table = taeda.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = taeda.nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer(taeda.tensor([1])).tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_equals_pytorchs(oracle, mode):
    torch = oracle.torch
    torch.manual_seed(0)
    theirs = torch.nn.EmbeddingBag(6, 3, mode=mode)
    taeda.manual_seed(0)
    ours = taeda.nn.EmbeddingBag(6, 3, mode=mode)
    assert repr(ours) == repr(theirs)
    for args in (([[1, 2], [3, 3]],), ([1, 2, 4, 5, 4], [0, 2]), ([1, 2, 4], [0, 2, 2])):
        oracle.assert_same(ours(*map(taeda.tensor, args)), theirs(*map(torch.tensor, args)))


def test_packed_sequences_equal_pytorchs(oracle):
    torch = oracle.torch
    for kind in ("RNN", "LSTM", "GRU"):
        torch.manual_seed(0)
        theirs = getattr(torch.nn, kind)(4, 3, num_layers=2, bidirectional=True)
        taeda.manual_seed(0)
        ours = getattr(taeda.nn, kind)(4, 3, num_layers=2, bidirectional=True)
        x = torch.randn(5, 3, 4)
        lengths = [2, 5, 3]
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        expected, state = theirs(packed)
        our_packed = taeda.nn.utils.rnn.pack_padded_sequence(
            oracle.ours(x), lengths, enforce_sorted=False
        )
        for a, e in zip(our_packed, packed):
            oracle.assert_same(a, e)
        actual, our_state = ours(our_packed)
        oracle.assert_same(actual.data, expected.data)
        oracle.assert_same(our_state, state)
        padded, sizes = taeda.nn.utils.rnn.pad_packed_sequence(actual, total_length=7)
        expected_padded, expected_sizes = torch.nn.utils.rnn.pad_packed_sequence(
            expected, total_length=7
        )
        oracle.assert_same(padded, expected_padded)
        oracle.assert_same(sizes, expected_sizes)


def test_attention_masks_equal_pytorchs(oracle):
    torch = oracle.torch
    torch.manual_seed(0)
    theirs = torch.nn.MultiheadAttention(6, 2)
    taeda.manual_seed(0)
    ours = taeda.nn.MultiheadAttention(6, 2)
    x = torch.randn(4, 3, 6)
    causal = torch.nn.Transformer.generate_square_subsequent_mask(4)
    padding = torch.zeros(3, 4, dtype=torch.bool)
    padding[1, 3] = True
    for need_weights in (True, False):
        for average in (True, False):
            expected = theirs(
                x, x, x, padding, need_weights, causal.isinf(), average_attn_weights=average
            )
            y = oracle.ours(x)
            actual = ours(
                y,
                y,
                y,
                oracle.ours(padding),
                need_weights,
                oracle.ours(causal).isinf(),
                average_attn_weights=average,
            )
            oracle.assert_same(actual, expected)


def test_lazy_layers_take_sizes_from_the_first_input(oracle):
    torch = oracle.torch
    cases = [
        ("LazyLinear", (3,), ROWS),
        ("LazyConv2d", (6, 3), IMAGE),
        ("LazyConvTranspose2d", (6, 3), IMAGE),
        ("LazyBatchNorm2d", (), IMAGE),
    ]
    for name, args, shape in cases:
        theirs = getattr(torch.nn, name)(*args)
        ours = getattr(taeda.nn, name)(*args)
        assert repr(ours) == repr(theirs)
        x = torch.randn(shape)
        torch.manual_seed(0)
        expected = theirs(x)
        taeda.manual_seed(0)
        actual = ours(oracle.ours(x))
        oracle.assert_same(actual, expected)
        assert type(ours).__name__ == type(theirs).__name__
        assert repr(ours) == repr(theirs)


def test_conv_transpose_output_size():
    layer = taeda.nn.ConvTranspose2d(1, 1, 3, stride=2)
    x = taeda.zeros(1, 1, 4, 4)
    assert layer(x, output_size=[10, 10]).shape == (1, 1, 10, 10)
    with pytest.raises(ValueError, match="requested an output size"):
        layer(x, output_size=[20, 20])


def test_adaptive_log_softmax_equals_pytorchs(oracle):
    torch = oracle.torch
    torch.manual_seed(0)
    theirs = torch.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], head_bias=True)
    taeda.manual_seed(0)
    ours = taeda.nn.AdaptiveLogSoftmaxWithLoss(8, 12, [3, 7], head_bias=True)
    x, y = torch.randn(6, 8), torch.tensor([0, 2, 3, 6, 7, 11])
    oracle.assert_same(tuple(ours(oracle.ours(x), oracle.ours(y))), tuple(theirs(x, y)))
    oracle.assert_same(ours.log_prob(oracle.ours(x)), theirs.log_prob(x))
    oracle.assert_same(ours.predict(oracle.ours(x)), theirs.predict(x))


def test_sync_batch_norm_equals_pytorchs(oracle):
    torch = oracle.torch

    def network(nn):
        return nn.Sequential(nn.BatchNorm2d(3, momentum=None), nn.Sequential(nn.Conv2d(3, 2, 1)))

    torch.manual_seed(0)
    taeda.manual_seed(0)
    theirs = torch.nn.SyncBatchNorm.convert_sync_batchnorm(network(torch.nn))
    ours = taeda.nn.SyncBatchNorm.convert_sync_batchnorm(before := network(taeda.nn))
    assert repr(ours) == repr(theirs) and ours[1] is before[1]
    for training in (True, True, False):
        x = torch.randn(4, 3, 2, 2)
        actual = ours.train(training)(oracle.ours(x))
        oracle.assert_same(actual, theirs.train(training)(x))
    oracle.assert_same(ours[0].running_var, theirs[0].running_var)
    plain = taeda.nn.BatchNorm1d(2).eval()
    converted = taeda.nn.SyncBatchNorm.convert_sync_batchnorm(plain, process_group="group")
    assert converted.weight is plain.weight and converted.running_mean is plain.running_mean
    assert not converted.training and converted.process_group == "group"
    with pytest.raises(ValueError, match=r"expected at least 2D input \(got 1D input\)"):
        converted(taeda.zeros(2))
    with pytest.raises(ValueError, match="number of input channels should be non-zero"):
        converted(taeda.zeros(2, 0))


@pytest.mark.parametrize("kind", ["BatchNorm1d", "BatchNorm2d", "InstanceNorm1d", "InstanceNorm3d"])
@pytest.mark.parametrize("dtype", ["float64", "float16", "bfloat16"])
def test_lazy_norms_may_change_dtype_before_the_first_input(kind, dtype):
    options = {"affine": True, "track_running_stats": True}
    dtype = getattr(taeda, dtype)
    layer = getattr(taeda.nn, "Lazy" + kind)(**options).to(dtype)
    x = taeda.rand(2, 3, *[4] * int(kind[-2])).to(dtype)
    assert layer(x).dtype is dtype
    assert type(layer).__name__ == kind
    for name, value in layer.state_dict().items():
        assert value.dtype is (taeda.int64 if name == "num_batches_tracked" else dtype)


@pytest.mark.parametrize("eps", [0.0, -1e-5])
def test_batch_norm_refuses_an_eps_that_pytorch_refuses(eps):
    oracle = pytest.importorskip("torch")
    for training in (True, False):
        outcomes = []
        for library in (taeda, oracle):
            layer = library.nn.BatchNorm1d(3, eps=eps).train(training)
            try:
                outcomes.append(layer(library.arange(12.0).view(4, 3)).tolist())
            except ValueError as error:
                outcomes.append(str(error).partition(", but got")[0])
        assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("weight", ["float64", "float16", "int64"])
def test_class_weights_have_the_dtype_of_the_scores(weight):
    oracle = pytest.importorskip("torch")
    for library in (taeda, oracle):
        x, target = library.ones(2, 3), library.tensor([0, 1])
        weights = library.ones(3, dtype=getattr(library, weight))
        for loss in ("nll_loss", "cross_entropy", "multi_margin_loss"):
            with pytest.raises(RuntimeError, match="expected scalar type Float but found"):
                getattr(library.nn.functional, loss)(x, target, weight=weights)


def test_max_unpool2d_keeps_channels_last():
    oracle = pytest.importorskip("torch")
    for library in (taeda, oracle):
        x = library.arange(96.0).view(1, 3, 8, 4).to(memory_format=library.channels_last)
        F = library.nn.functional
        y, indices = F.max_pool2d(x, 2, return_indices=True)
        z = F.max_unpool2d(y, indices, 2)
        assert z.is_contiguous(memory_format=library.channels_last)
        assert z.sum() == y.sum()
