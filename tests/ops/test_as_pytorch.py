"""What PyTorch's database of operators showed to differ from PyTorch, and no longer does."""

import pytest

import taeda

torch = pytest.importorskip("torch")
BOTH = (taeda, torch)


def outcome(call):
    """Values, dtype and strides, or the exception's class and the beginning of its text."""
    try:
        found = call()
    except Exception as error:
        return type(error).__name__, str(error).splitlines()[0][:40]
    found = found if isinstance(found, tuple) else (found,)
    return [(x.resolve_conj().tolist(), str(x.dtype).split(".")[1], tuple(x.shape)) for x in found]


def same(call):
    ours, theirs = (outcome(lambda lib=lib: call(lib)) for lib in BOTH)
    assert ours == theirs


# --- masked_fill with a value in a tensor ---

VALUES = [1j, 1 + 0j, 300, -1, 300.7, float("nan"), float("inf"), 1 << 40, True]
DTYPES = ["float32", "int8", "uint8", "int64", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", VALUES, ids=str)
def test_a_value_in_a_tensor_is_filled_in_where_it_fits(dtype, value):
    for name in ("masked_fill", "masked_fill_"):

        def call(lib, name=name):
            x = lib.zeros(3, dtype=getattr(lib, dtype))
            mask = lib.tensor([True, False, True])
            return getattr(x, name)(mask, lib.tensor(value))

        ours, theirs = (outcome(lambda lib=lib: call(lib)) for lib in BOTH)
        assert repr(ours) == repr(theirs)  # NaN is NaN


def test_masked_fill_looks_at_no_value_inside_vmap():
    mask = taeda.tensor([True, False])
    fill = taeda.vmap(lambda x, v: x.masked_fill(mask, v))
    values = taeda.tensor([3.0, 4.0])
    assert fill(taeda.zeros(2, 2), values).tolist() == [[3.0, 0.0], [4.0, 0.0]]


def test_masked_fill_of_a_tensor_has_gradients():
    x, v = taeda.zeros(3, requires_grad=True), taeda.tensor(2.0, requires_grad=True)
    y = x.masked_fill(taeda.tensor([True, False, True]), v)
    y.backward(taeda.tensor([1.0, 2.0, 4.0]))
    assert x.grad.tolist() == [0, 2, 0] and v.grad.item() == 5


# --- vmap of what PyTorch runs sample by sample ---


def test_weights_of_a_histogram_may_be_batched():
    x, weights = [1.0, 2.0, 4.0], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

    def call(lib):
        one = lambda w: lib.histogram(lib.tensor(x), 3, weight=w)  # noqa: E731
        return tuple(lib.vmap(one)(lib.tensor(weights)))

    same(call)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
@pytest.mark.parametrize("what", ["weight", "indices", "offsets", "all"])
def test_bags_are_batched(mode, padding, what):
    weight = torch.randn(2, 5, 3, generator=torch.manual_seed(0))
    weight[:, 2] = float("nan") if padding else 0.5
    indices = torch.tensor([[0, 2, 4, 1], [2, 2, 3, 0]])
    offsets = torch.tensor([[0, 1, 3], [0, 2, 2]])
    given = {"weight": weight, "indices": indices, "offsets": offsets}
    batched = list(given) if what == "all" else [what]

    def bags(lib, weight, indices, offsets):
        function = lib.nn.functional.embedding_bag
        return function(indices, weight, offsets, mode=mode, padding_idx=padding)

    def args(i):
        return {k: v[i] if k in batched else v[0] for k, v in given.items()}

    expected = torch.stack([bags(torch, **args(i)) for i in range(2)])
    ours = {k: taeda.from_numpy(v.numpy()) for k, v in given.items()}
    dims = tuple(0 if k in batched else None for k in given)
    values = [v if k in batched else v[0] for k, v in ours.items()]
    result = taeda.vmap(lambda w, i, o: bags(taeda, w, i, o), in_dims=dims)(*values)
    assert torch.allclose(torch.from_dlpack(result), expected, equal_nan=True)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_chunked_losses_are_batched_and_have_tangents(reduction):
    from taeda.nn.modules import LinearCrossEntropyOptions

    functional = taeda.nn.functional
    x, w = taeda.randn(2, 6, 4), taeda.randn(5, 4)
    target = taeda.tensor([0, 1, 4, 2, 2, 3])
    options = LinearCrossEntropyOptions(batch_chunk_size=2)

    def loss(x, options=options):
        return functional.linear_cross_entropy(x, w, target, reduction=reduction, options=options)

    whole = taeda.stack([loss(x[i], None) for i in range(2)])
    assert taeda.allclose(taeda.vmap(loss)(x), whole, rtol=1e-5)
    t = taeda.randn(6, 4)
    tangents = [taeda.func.jvp(f, (x[0],), (t,))[1] for f in (loss, lambda x: loss(x, None))]
    assert taeda.allclose(*tangents, rtol=1e-5)


# --- the rest ---


def test_index_add_of_complex32_and_what_is_derived_by_it():
    def call(lib):
        x = lib.tensor([1 + 1j, 2.0, 3j]).to(lib.complex32).requires_grad_()
        index = lib.tensor([0, 0, 2])
        y = x.index_add(0, index, x)
        g = lib.autograd.grad(x.index_select(0, index), x, lib.ones_like(x))[0]
        z = lib.zeros(3, dtype=lib.complex32)
        z.index_put_((index,), x.detach(), accumulate=True)
        return tuple(t.detach().to(lib.complex64) for t in (y, g, z))

    same(call)


def test_half_of_a_two_sided_spectrum_says_all_of_a_real_signal():
    spectrum = torch.randn(8, 5, dtype=torch.complex128, generator=torch.manual_seed(0))
    window = torch.hann_window(8, dtype=torch.float64)
    options = {"n_fft": 8, "onesided": False, "return_complex": False}
    theirs = torch.istft(spectrum, window=window, **options)
    ours = taeda.istft(
        taeda.from_numpy(spectrum.numpy()), window=taeda.from_numpy(window.numpy()), **options
    )
    assert torch.allclose(torch.from_dlpack(ours), theirs)


def test_the_hash_of_a_number_may_name_its_dimension():
    for dim in (0, -1):
        same(lambda lib, d=dim: lib.hash_tensor(lib.tensor(2.5), d).to(lib.int64))
