"""What PyTorch's database of operators showed to differ from PyTorch, and no longer does."""

import itertools
import operator

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

VALUES = [1j, 1 + 0j, 300, -1, 300.7, float("nan"), float("inf"), 1 << 40, True, -1.5, -0.5]
DTYPES = ["float32", "float16", "bfloat16", "int8", "uint8", "int64", "bool", "complex64"]


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


def test_operators_whose_sizes_depend_on_values_are_batched_where_samples_agree():
    x = [[1.0, 0.0, 2.0], [3.0, 4.0, 0.0]]
    same(lambda lib: lib.vmap(lib.argwhere)(lib.tensor(x)))
    for size in (1, 4):
        same(lambda lib, n=size: lib.vmap(lambda v: lib.nonzero_static(v, size=n))(lib.tensor(x)))
    same(lambda lib: tuple(lib.vmap(lambda v: lib.histogram(v, 4))(lib.tensor(x))))
    with pytest.raises(RuntimeError):
        taeda.vmap(taeda.argwhere)(taeda.tensor([[1.0, 0.0], [1.0, 1.0]]))


def test_weights_of_a_histogram_may_be_batched():
    x, weights = [1.0, 2.0, 4.0], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]

    def call(lib):
        one = lambda w: lib.histogram(lib.tensor(x), 3, weight=w)  # noqa: E731
        return tuple(lib.vmap(one)(lib.tensor(weights)))

    same(call)


def test_samples_are_resized_and_made_with_strides():
    x = taeda.zeros(2, 3)
    resized = taeda.vmap(lambda v: v.clone().resize_(2, 4).fill_(7.0))(x)
    assert resized.tolist() == [[[7.0] * 4] * 2] * 2
    like = taeda.vmap(lambda v: v.clone().resize_as_(taeda.ones(2)).fill_(1.0))(x)
    assert like.tolist() == [[1.0, 1.0]] * 2
    made = taeda.vmap(lambda v: v.new_empty_strided((2, 3), (1, 2)).fill_(5.0))(x)
    assert made.shape == (2, 2, 3) and (made == 5).all()
    assert made.stride()[1:] == (1, 2)


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


def test_cholesky_has_pytorchs_gradient_where_the_cotangents_diagonal_is_complex():
    a = torch.randn(3, 3, dtype=torch.complex128, generator=torch.manual_seed(0))
    a = a @ a.mH + torch.eye(3)
    g = torch.randn(3, 3, dtype=torch.complex128, generator=torch.manual_seed(1))
    for upper in (False, True):
        found = []
        for lib, x, gy in ((torch, a, g), (taeda, *(taeda.from_numpy(t.numpy()) for t in (a, g)))):
            x = x.clone().requires_grad_()
            found.append(lib.autograd.grad(lib.linalg.cholesky(x, upper=upper), x, gy)[0])
        assert torch.allclose(torch.from_dlpack(found[1].resolve_conj()), found[0])


def test_the_norm_of_order_zero_has_no_gradient():
    for lib in BOTH:
        x = lib.tensor([1.0, 0.0, 2.0], requires_grad=True)
        y = lib.linalg.vector_norm(x, 0)
        assert y.item() == 2
        assert lib.autograd.grad(y, x, allow_unused=True)[0] is None


@pytest.mark.parametrize(
    "change",
    [
        {"reduction": "abc"},
        {"weight": (5, 4)},
        {"weight": ()},
        {"weight": (5,)},
        {"x": (5, 0)},
        {"target": (5, 4)},
        {"float": True},
    ],
    ids=str,
)
def test_multi_margin_loss_refuses_as_pytorch(change):
    def call(lib):
        x = lib.zeros(*change.get("x", (5, 4)))
        dtype = lib.float32 if "float" in change else lib.int64
        target = lib.zeros(*change.get("target", (5,)), dtype=dtype)
        weight = lib.zeros(change["weight"]) if "weight" in change else None
        function = lib.nn.functional.multi_margin_loss
        return function(x, target, weight=weight, reduction=change.get("reduction", "mean"))

    same(call)


def test_narrow_copy_raises_a_runtime_error_beyond_the_last_dimension():
    for dim, error in ((3, RuntimeError), (-4, IndexError)):
        for lib in BOTH:
            with pytest.raises(error):
                lib.narrow_copy(lib.zeros(2, 3, 4), dim, 0, 1)


def test_small_integers_contract_over_dimensions_that_broadcast():
    def call(lib):
        a = lib.arange(6, dtype=lib.uint8).reshape(2, 3)
        return lib.tensordot(a, lib.ones(1, 3, dtype=lib.uint8), dims=([0, 1], [0, 1]))

    same(call)


def test_the_hash_of_a_number_may_name_its_dimension():
    for dim in (0, -1):
        same(lambda lib, d=dim: lib.hash_tensor(lib.tensor(2.5), d).to(lib.int64))


def test_masked_indices_are_never_out_of_range():
    def call(lib):
        x = lib.arange(12.0).reshape(3, 4).requires_grad_()
        mask = lib.tensor([[True, False], [False, True]])
        indices = [lib.tensor([[0], [9]]), lib.tensor([[-7, 3]])]
        aten = lib.ops.aten
        y = aten._unsafe_masked_index(x, mask, indices, 5)
        z = aten._unsafe_masked_index_put_accumulate(x, mask, indices, lib.ones(2, 2))
        return tuple(t.detach() for t in (y, z, lib.autograd.grad(y.sum(), x)[0]))

    same(call)


def test_chunks_of_several_tensors_follow_each_other():
    shapes = [((3, 4), (2, 4)), ((5,), (1,)), ((2, 3), (2, 5, 2))]
    for (first, second), dim in zip(shapes, (0, 0, 1), strict=True):

        def call(lib, first=first, second=second, dim=dim):
            n = lib.arange(40.0)
            take = lambda s, i: n[i : i + lib.zeros(s).numel()].reshape(s)  # noqa: E731
            return lib._chunk_cat([take(first, 0), take(second, 9)], dim, 2)

        same(call)
    for arguments in ((0, 0), (0, -1), (1, 2), (-1, 2)):
        same(lambda lib, a=arguments: lib._chunk_cat([lib.ones(2, 3), lib.ones(4)], *a))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_derivatives_of_logcumsumexp_do_not_read_a_rounded_result(dtype):
    x = torch.tensor([1000.0, 999.0, 1003.5, 1000.0, 1004.0]).to(getattr(torch, dtype))
    exact = x.double().requires_grad_()
    expected = torch.autograd.grad(exact.logcumsumexp(0).sum(), exact)[0].tolist()
    ours = taeda.tensor(x.tolist(), dtype=getattr(taeda, dtype), requires_grad=True)
    gx = taeda.autograd.grad(ours.logcumsumexp(0).sum(), ours)[0].tolist()
    assert gx == pytest.approx(expected, rel=0.02)
    _, tangent = taeda.func.jvp(lambda t: t.logcumsumexp(0), (ours.detach(),), (ours * 0 + 1,))
    assert tangent.tolist() == pytest.approx([1.0] * 5, rel=0.02)


def test_complex_numbers_from_their_parts_are_new_memory_laid_out_as_pytorchs():
    torch = pytest.importorskip("torch")
    for framework in (taeda, torch):
        a, b = framework.arange(12.0).view(3, 4), framework.ones(3, 4)
        for parts, strides in (
            ((a, b), (4, 1)),
            ((a.t(), b.t()), (1, 4)),
            ((a.t(), b.view(4, 3)), (1, 4)),
            ((a[:, ::2], b[:, ::2]), (2, 1)),
            ((a[:, :1], b), (4, 1)),
        ):
            z = framework.complex(*parts)
            assert z.stride() == strides and z.storage_offset() == 0
            assert not z._is_view() and z._base is None
            assert z.real.tolist() == (parts[0] + 0 * parts[1]).tolist()
            assert z.imag.tolist() == (parts[1] + 0 * parts[0]).tolist()


def test_complex_numbers_have_gradients_by_both_parts():
    real = taeda.tensor([[1.0], [2.0]], requires_grad=True)
    imag = taeda.tensor([3.0, 4.0, 5.0], requires_grad=True)
    z = taeda.complex(real, imag)
    assert type(z.grad_fn).__name__ == "ComplexBackward0"
    (z * taeda.tensor([1 + 2j, 3j, 1])).real.sum().backward()
    assert real.grad.tolist() == [[2.0], [2.0]]
    assert imag.grad.tolist() == [-4.0, -6.0, 0.0]
    _, tangent = taeda.func.jvp(taeda.complex, (real, imag), (real * 2, imag * 3))
    assert tangent.tolist() == taeda.complex(real * 2, imag * 3).tolist()
    batched = taeda.vmap(taeda.complex, in_dims=(0, None))(real, imag)
    assert batched.tolist() == z.tolist()


# --- out= that PyTorch takes with other arguments only, resizes in its own way, or leaves ---

OUTS = [
    lambda lib: lib.sum(lib.ones(2, 3), out=lib.zeros(())),
    lambda lib: lib.sum(lib.ones(2, 3), None, out=lib.zeros(())),
    lambda lib: lib.sum(lib.ones(2, 3), dim=0, out=lib.zeros(3)),
    lambda lib: lib.prod(lib.ones(2, 3), out=lib.zeros(())),
    lambda lib: lib.prod(lib.ones(2, 3), 0, out=lib.zeros(3)),
    lambda lib: lib.argsort(lib.tensor([2, 1]), out=lib.zeros(2, dtype=lib.int64)),
    lambda lib: lib.argsort(lib.tensor([2, 1]), 0, out=lib.zeros(2, dtype=lib.int64)),
    lambda lib: lib.argsort(lib.tensor([2, 1]), stable=True, out=lib.zeros(2, dtype=lib.int64)),
    lambda lib: lib.argsort(lib.tensor([2, 1]), 0, False, True),
]


@pytest.mark.parametrize("call", OUTS)
def test_out_is_taken_with_the_arguments_that_pytorch_wants_beside_it(call):
    ours, theirs = (outcome(lambda lib=lib: call(lib)) for lib in BOTH)
    assert ours[0] == theirs[0]  # the texts differ


@pytest.mark.parametrize("shape", [(2, 2), (2,), (1, 1), (), (3,)])
def test_addbmm_in_place_broadcasts_and_resizes(shape):
    def call(lib):
        x = lib.ones(shape)
        batches = lib.arange(12.0).reshape(3, 2, 2)
        result = x.addbmm_(batches, batches, beta=2, alpha=3)
        assert result is x
        return x

    ours, theirs = (outcome(lambda lib=lib: call(lib)) for lib in BOTH)
    assert ours[0] == theirs[0]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
@pytest.mark.parametrize("scales", [{}, {"beta": 0.5}, {"alpha": 2, "beta": 3}])
def test_addbmm_of_integers_inside_vmap(dtype, scales):
    def call(lib):
        x, batches = lib.ones(3, 2, 2), lib.ones(3, 4, 2, 2)
        x, batches = (t.to(getattr(lib, dtype)) for t in (x, batches))
        return lib.vmap(lambda x, a: lib.addbmm(x, a, a, **scales))(x, batches)

    same(call)


def test_addbmm_resizes_its_out_without_a_word(recwarn):
    x = taeda.ones(3, 2, 2)
    assert taeda.addbmm(taeda.ones(2, 2), x, x, out=taeda.zeros(1)).shape == (2, 2)
    assert not recwarn.list


@pytest.mark.parametrize("size", [0, 1])
def test_an_out_of_ormqr_keeps_its_order_where_it_had_elements(size):
    def strides(lib):
        eye = lib.eye(4)
        return lib.ormqr(eye[:, :3], lib.ones(3), eye[:, :2], out=lib.zeros(size)).stride()

    assert strides(taeda) == strides(torch)


@pytest.mark.parametrize("sizes", [(3,), (2, 3), (5, 2, 3)])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_an_out_of_linear_with_gaps(sizes):
    def strides(lib):
        out = lib.zeros(*sizes[:-1], 4, 2)[..., 0]
        lib.nn.functional.linear(lib.ones(sizes), lib.ones(4, 3), out=out)
        return out.stride(), out.tolist()

    assert strides(taeda) == strides(torch)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_statistics_of_batch_norm_are_written_in_training_alone(training):
    def call(lib):
        outs = lib.zeros(1), lib.full((5,), 7.0), lib.full((3,), 8.0)
        x, running = lib.arange(8.0).reshape(4, 2), (lib.zeros(2), lib.ones(2))
        lib.native_batch_norm(x, None, None, *running, training, 0.1, 1e-5, out=outs)
        return outs[1:]

    ours, theirs = (outcome(lambda lib=lib: call(lib)) for lib in BOTH)
    assert [shape for _, _, shape in ours] == [shape for _, _, shape in theirs]


def test_out_of_gather_is_refused_where_it_would_overlap_once_resized():
    def call(lib):
        index = lib.tensor([0, 1, 0])
        return lib.gather(lib.arange(3), 0, index[1:], out=index[:1])

    ours, theirs = (outcome(lambda lib=lib: call(lib)) for lib in BOTH)
    assert ours[0] == theirs[0] == "RuntimeError"


# --- results without a gradient ---


def test_statistics_of_layer_norm_have_no_gradient():
    found = []
    for lib in BOTH:
        x = lib.arange(6.0).reshape(2, 3).requires_grad_()
        found.append([t.requires_grad for t in lib.native_layer_norm(x, [3], None, None, 1e-5)])
    assert found[0] == found[1] == [True, False, False]


@pytest.mark.parametrize("dtype", ["int64", "bool", "float32"])
def test_the_gradient_of_dropout_of_any_dtype(dtype):
    def call(lib):
        gradient = lib.ones(4).to(getattr(lib, dtype))
        return lib.ops.aten.native_dropout_backward(gradient, lib.ones(4, dtype=lib.bool), 2.5)

    same(call)


# --- arguments of other types ---

FUNCTIONS = ["pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "rrelu", "ctc_loss"]


@pytest.mark.parametrize("name", [*FUNCTIONS, "multilabel_margin_loss"])
def test_what_is_no_tensor_is_a_type_error(name):
    rest = {"ctc_loss": (1, [1], [1]), "rrelu": ()}.get(name, (2,))
    for lib in BOTH:
        with pytest.raises(TypeError):
            getattr(lib.nn.functional, name)("a", *rest)


@pytest.mark.parametrize("name", ["l1_loss", "mse_loss", "kl_div", "huber_loss"])
def test_a_reduction_that_is_no_word_is_a_value_error(name):
    for lib in BOTH:
        with pytest.raises(ValueError, match="3 is not a valid value for reduction"):
            getattr(lib.nn.functional, name)(lib.ones(2), lib.ones(2), reduction=3)


def test_a_device_by_number_is_an_accelerators():
    if torch.cuda.is_available() or taeda.cuda.is_available():
        pytest.skip("there is one")
    for lib in BOTH:
        with pytest.raises(RuntimeError, match="Cannot access accelerator device"):
            lib.empty(2, device=0)


def test_combinations_beyond_all_memory_are_refused_at_once():
    for lib in BOTH:
        with pytest.raises(RuntimeError):
            lib.combinations(lib.ones(3), 1000, with_replacement=True)
        with pytest.raises((TypeError, ValueError)):
            lib.combinations(lib.ones(3), 1 << 63)

    for n, r in ((1000, 6), (100_000, 3), (1 << 20, 3)):
        with pytest.raises(RuntimeError):
            taeda.combinations(taeda.ones(n), r)


def test_combinations_are_pythons():
    for n, r in itertools.product((0, 1, 4, 7), (1, 2, 3, 6, 8)):
        for repeats, choose in (
            (False, itertools.combinations),
            (True, itertools.combinations_with_replacement),
        ):
            rows = taeda.combinations(taeda.arange(n), r, repeats)
            assert rows.shape[1] == r
            assert rows.tolist() == [list(row) for row in choose(range(n), r)]
    assert taeda.combinations(taeda.ones(1), 1 << 40).shape == (0, 1 << 40)


def test_group_norm_of_too_few_dimensions_raises_as_pytorchs():
    for shape in ((3,), ()):
        for name in ("group_norm", "nn.functional.group_norm"):
            kinds = set()
            for lib in BOTH:
                with pytest.raises((RuntimeError, IndexError)) as error:
                    operator.attrgetter(name)(lib)(lib.ones(shape), 1)
                kinds.add(error.type)
            assert len(kinds) == 1


# --- out= that depends on the arguments ---

OUT_DTYPES = ["float16", "float32", "float64", "int32", "bool", "complex64", "complex128"]


def taken(call, dtype, size=()):
    """What `call(lib, out=...)` leaves in out=, how it lies, or the exception's class."""
    found = []
    for lib in BOTH:
        out = lib.empty(size, dtype=getattr(lib, dtype))
        try:
            call(lib, out)
        except Exception as error:
            found.append(type(error).__name__)
        else:
            found.append((out.tolist(), tuple(out.shape), out.stride()))
    return found


@pytest.mark.parametrize("dtype", OUT_DTYPES)
@pytest.mark.parametrize("given", ["float32", "complex64"])
@pytest.mark.parametrize("dim", [(), (0,), ((0,), True)], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_an_average_of_complex_numbers_over_all_goes_into_no_real_out(dtype, given, dim):
    def call(lib, out):
        lib.mean(lib.tensor([1.0, 4.0]).to(getattr(lib, given)) * 2, *dim, out=out)

    ours, theirs = taken(call, dtype, (1,) if len(dim) == 2 else ())
    assert ours == theirs


@pytest.mark.parametrize("dtype", OUT_DTYPES)
@pytest.mark.parametrize("size", [(), (2,), (3,)], ids=str)
@pytest.mark.parametrize("given", [("int64", 2, 3), ("float64", 2, [3, 5]), ("int16", [1, 2], 4)])
@pytest.mark.filterwarnings("ignore:An output:UserWarning")
def test_a_product_with_a_number_is_converted_to_the_out_of_inner(dtype, size, given):
    def call(lib, out):
        a, b = (lib.tensor(x, dtype=getattr(lib, given[0])) for x in given[1:])
        lib.inner(a, b, out=out)

    ours, theirs = taken(call, dtype, size)
    assert ours == theirs


def test_a_sum_of_products_is_not_converted_to_the_out_of_inner():
    x = taeda.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="Double"):
        taeda.inner(x, x, out=taeda.empty((), dtype=taeda.float64))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("given", ["float32", "complex64"])
@pytest.mark.parametrize("size", [(0,), (2, 2), (4, 3)], ids=str)
@pytest.mark.filterwarnings("ignore:An output:UserWarning")
def test_an_out_of_ifft_lies_and_is_converted_as_pytorchs(dtype, given, size):
    def call(lib, out):
        x = lib.arange(12.0).reshape(4, 3).to(getattr(lib, given))
        lib.fft.ifft(x, dim=0, out=out)
        out.zero_()  # the values are those of another test

    ours, theirs = taken(call, dtype, size)
    assert ours == theirs


@pytest.mark.parametrize("name", ["std", "var"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "complex64", "int32"])
@pytest.mark.parametrize("given", ["float16", "bfloat16", "float32", "complex64"])
@pytest.mark.parametrize("dim", [None, 0])
def test_the_out_of_a_deviation_is_of_the_dtypes_that_pytorch_takes(name, dtype, given, dim):
    def call(lib, out):
        x = lib.tensor([[1.0, 2.0], [3.0, 6.0]]).to(getattr(lib, given))
        getattr(lib, name)(x, dim, out=out)
        out.zero_()

    ours, theirs = taken(call, dtype, () if dim is None else (2,))
    assert ours == theirs


@pytest.mark.parametrize("dtype", ["int64", "bool", "float16"])
@pytest.mark.parametrize("sizes", [(5, 2, 1, 5), (5, 2, 2, 4), (5, 2, 2, 5)], ids=str)
def test_ormqr_looks_at_shapes_before_the_dtype(dtype, sizes):
    rows, columns, scales, others = sizes

    def call(lib):
        made = (
            lib.zeros(s, dtype=getattr(lib, dtype)) for s in ((rows, columns), scales, (others, 2))
        )
        return lib.ormqr(*made)

    same(call)
