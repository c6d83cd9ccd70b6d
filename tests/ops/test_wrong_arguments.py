"""Wrong arguments are refused by exceptions of PyTorch's class."""

import pytest

import taeda

torch = pytest.importorskip("torch")


def answer(call, lib):
    """The exception's class, or none."""
    try:
        call(lib, lib.nn.functional)
    except Exception as error:
        return type(error)
    return None


def agree(call):
    ours, theirs = answer(call, taeda), answer(call, torch)
    assert theirs is not None  # it is wrong
    assert ours is theirs


# --- what is refused before a dimension is looked at ---

NO_DIMENSION = {
    "split": lambda lib, F: lib.ones(()).split(1, 5),
    "split by sizes": lambda lib, F: lib.ones(()).split([1], 5),
    "split_with_sizes": lambda lib, F: lib.split_with_sizes(lib.ones(()), [1], 5),
    "split_with_sizes_copy": lambda lib, F: lib.split_with_sizes_copy(lib.ones(()), [1], 5),
    "unsafe_split": lambda lib, F: lib.unsafe_split(lib.ones(()), 1, 5),
    "chunk": lambda lib, F: lib.ones(()).chunk(1, 5),
    "unsafe_chunk": lambda lib, F: lib.unsafe_chunk(lib.ones(()), 1, 5),
    "tensor_split": lambda lib, F: lib.ones(()).tensor_split(1, 5),
    "tensor_split at indices": lambda lib, F: lib.ones(()).tensor_split((1,), 5),
    "narrow": lambda lib, F: lib.ones(()).narrow(5, 0, 1),
    "unflatten": lambda lib, F: lib.ones(()).unflatten(0, (1,)),
    "renorm": lambda lib, F: lib.ones(3).renorm(2, 5, 1.0),
    "matrix_norm": lambda lib, F: lib.linalg.matrix_norm(lib.ones(3)),
    "nuclear norm": lambda lib, F: lib.norm(lib.ones(3), "nuc", (0, 1)),
    "linalg.cross": lambda lib, F: lib.linalg.cross(lib.ones(3, 3), lib.ones(3), dim=1),
}


@pytest.mark.parametrize("name", NO_DIMENSION)
def test_the_number_of_dimensions_is_looked_at_first(name):
    agree(NO_DIMENSION[name])


def test_early_checks_let_negative_dimensions_wrap():
    x = taeda.arange(6).reshape(2, 3)
    assert [p.tolist() for p in x.split(2, -1)] == [[[0, 1], [3, 4]], [[2], [5]]]
    assert x.narrow(-1, 1, 1).tolist() == [[1], [4]]
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.split(2, 2)


# --- tensors of too few dimensions or of another shape ---

SHAPES = {
    "addbmm batch1": lambda lib, F: lib.addbmm(lib.ones(2, 2), lib.ones(2), lib.ones(2, 2, 2)),
    "addbmm batch2": lambda lib, F: lib.addbmm(lib.ones(2, 2), lib.ones(2, 2, 2), lib.ones(())),
    "baddbmm": lambda lib, F: lib.baddbmm(lib.ones(2, 2, 2), lib.ones(()), lib.ones(2, 2, 2)),
    "mv": lambda lib, F: lib.mv(lib.ones(()), lib.ones(2)),
    "bilinear": lambda lib, F: F.bilinear(lib.ones(2, 3), lib.ones(2, 3), lib.ones(3)),
    "diag_embed": lambda lib, F: lib.diag_embed(lib.ones(())),
    "matrix_power": lambda lib, F: lib.linalg.matrix_power(lib.ones(3), 2),
    "linalg.solve": lambda lib, F: lib.linalg.solve(lib.eye(2), lib.ones(())),
    "lu_solve": lambda lib, F: lib.linalg.lu_solve(
        lib.eye(2), lib.tensor(1, dtype=lib.int32), lib.ones(2, 1)
    ),
    "householder_product": lambda lib, F: lib.linalg.householder_product(
        lib.ones(3, 2), lib.ones(())
    ),
    "avg_pool2d": lambda lib, F: F.avg_pool2d(lib.ones(3), 2),
    "cross_entropy": lambda lib, F: F.cross_entropy(lib.ones(()), lib.ones(2, 2)),
    "rms_norm": lambda lib, F: F.rms_norm(lib.ones(2), (2, 2)),
    "select_scatter": lambda lib, F: lib.select_scatter(lib.ones(2, 2), lib.ones(()), 0, 0),
    "slice_scatter": lambda lib, F: lib.slice_scatter(lib.ones(2, 2), lib.ones(())),
    "slice_scatter step": lambda lib, F: lib.slice_scatter(lib.ones(2, 2), lib.ones(2, 2), step=-1),
    "diagonal_scatter": lambda lib, F: lib.diagonal_scatter(lib.ones(2, 2), lib.ones(())),
    "vecdot": lambda lib, F: lib.linalg.vecdot(lib.ones(1), lib.ones(3)),
    "index_reduce": lambda lib, F: lib.ones(()).index_reduce(
        0, lib.tensor([0, 0]), lib.ones(()), "prod"
    ),
    "index_reduce index": lambda lib, F: lib.ones(()).index_reduce(
        0, lib.tensor(1), lib.ones(()), "prod"
    ),
    "cosine_embedding_loss": lambda lib, F: F.cosine_embedding_loss(
        lib.ones(2, 2), lib.ones(2), lib.ones(2)
    ),
    "adaptive_avg_pool2d": lambda lib, F: F.adaptive_avg_pool2d(lib.ones(1, 4, 4), (2, 2, 2)),
    "adaptive_max_pool1d": lambda lib, F: F.adaptive_max_pool1d(lib.ones(3), 2),
    "grid_sample": lambda lib, F: F.grid_sample(
        lib.ones(()), lib.ones(1, 2, 2, 2), align_corners=False
    ),
    "instance_norm": lambda lib, F: F.instance_norm(lib.ones(3)),
    "einsum": lambda lib, F: lib.einsum("i", []),
    "_chunk_cat": lambda lib, F: lib._chunk_cat([lib.ones(2)], 9, 1),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_are_refused_by_the_same_class(name):
    agree(SHAPES[name])


def test_a_product_of_two_vectors_looks_at_no_dimension():
    x = [1.0, 2.0]
    ours, theirs = (
        lib.linalg.vecdot(lib.tensor(x), lib.tensor(x), dim=9) for lib in (taeda, torch)
    )
    assert ours.item() == theirs.item() == 5
    y = taeda.tensor(x, requires_grad=True)
    taeda.linalg.vecdot(y, y).backward()
    assert y.grad.tolist() == [2, 4]


# --- dtypes ---

DTYPES = {
    "cross": lambda lib, F: lib.cross(lib.ones(3), lib.ones(3, dtype=lib.float64), 0),
    "cross of bool": lambda lib, F: lib.linalg.cross(
        lib.ones(3, dtype=lib.bool), lib.ones(3, dtype=lib.bool)
    ),
    "vecdot": lambda lib, F: lib.linalg.vecdot(lib.ones(2, 3), lib.ones(2, 3, dtype=lib.float64)),
    "trapezoid": lambda lib, F: lib.trapezoid(lib.ones(3, dtype=lib.bool)),
    "cumulative_trapezoid": lambda lib, F: lib.cumulative_trapezoid(
        lib.ones(3), lib.ones(3, dtype=lib.bool)
    ),
    "median": lambda lib, F: lib.median(lib.ones(3, dtype=lib.bool)),
    "nanmedian": lambda lib, F: lib.nanmedian(lib.ones(3, dtype=lib.bool), 0),
    "isin": lambda lib, F: lib.isin(lib.ones(3, dtype=lib.bool), lib.ones(3)),
    "ldexp": lambda lib, F: lib.ldexp(lib.ones(3), lib.ones(3, dtype=lib.bool)),
    "deg2rad": lambda lib, F: lib.deg2rad(lib.ones(3, dtype=lib.complex64)),
    "rad2deg": lambda lib, F: lib.rad2deg(lib.ones(3, dtype=lib.complex64)),
    "bucketize": lambda lib, F: lib.bucketize(lib.ones(3, dtype=lib.complex64), lib.ones(3)),
    "mse_loss": lambda lib, F: F.mse_loss(lib.ones(3, dtype=lib.complex64), lib.ones(3)),
    "smooth_l1_loss": lambda lib, F: F.smooth_l1_loss(
        lib.ones(3, dtype=lib.complex64), lib.ones(3)
    ),
    "huber_loss": lambda lib, F: F.huber_loss(lib.ones(3, dtype=lib.complex64), lib.ones(3)),
    "kl_div": lambda lib, F: F.kl_div(lib.ones(3, dtype=lib.int64), lib.ones(3)),
    "glu": lambda lib, F: F.glu(lib.ones(4, dtype=lib.complex64)),
    "cosine_similarity": lambda lib, F: F.cosine_similarity(
        lib.ones(3, 2, dtype=lib.complex64), lib.ones(3, 2)
    ),
    "bilinear": lambda lib, F: F.bilinear(
        lib.ones(2, 3), lib.ones(2, 3), lib.ones(4, 3, 3), lib.ones(4, dtype=lib.float64)
    ),
    "batch_norm": lambda lib, F: F.batch_norm(
        lib.ones(2, 3), lib.ones(3, dtype=lib.float64), lib.ones(3)
    ),
    "pad": lambda lib, F: F.pad(lib.ones(1, 3, dtype=lib.bool), (1, 1), mode="reflect"),
    "interpolate": lambda lib, F: F.interpolate(lib.ones(1, 1, 3, dtype=lib.int64), 2),
    "nanquantile": lambda lib, F: lib.nanquantile(lib.ones(3, dtype=lib.float16), 0.5),
    "ldl_factor": lambda lib, F: lib.linalg.ldl_factor(lib.eye(2, dtype=lib.float16)),
    "cholesky_inverse": lambda lib, F: lib.cholesky_inverse(lib.eye(2, dtype=lib.float16)),
    "multilabel_margin_loss": lambda lib, F: F.multilabel_margin_loss(
        lib.ones(3), lib.ones(3, dtype=lib.bool)
    ),
    "rrelu": lambda lib, F: F.rrelu(lib.ones(3, dtype=lib.int64), training=True),
}


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_are_refused_by_the_same_class(name):
    agree(DTYPES[name])


# --- Python functions ---

TYPES = {
    "dropout2d": lambda lib, F: F.dropout2d(lib.ones(1, 2, 2, 2), 0.5, "a"),
    "dropout3d": lambda lib, F: F.dropout3d(lib.ones(1, 2, 2, 2, 2), 0.5, [True]),
    "alpha_dropout": lambda lib, F: F.alpha_dropout("a"),
    "feature_alpha_dropout": lambda lib, F: F.feature_alpha_dropout(lib.ones(2, 2), 0.5, 2.5),
    "rrelu": lambda lib, F: F.rrelu(lib.ones(3), training="a"),
    "combinations": lambda lib, F: lib.combinations(lib.ones(3), with_replacement="a"),
    "nonzero": lambda lib, F: lib.nonzero(lib.ones(3), as_tuple=2.5),
    "nonzero out": lambda lib, F: lib.nonzero(lib.ones(3), out="a"),
    "histogram": lambda lib, F: lib.histogram("a", 3),
    "histogram weight": lambda lib, F: lib.histogram(lib.ones(3), 3, weight="a"),
    "histogram density": lambda lib, F: lib.histogram(lib.ones(3), 3, density="a"),
    "histogramdd": lambda lib, F: lib.histogramdd(lib.ones(3, 2), "ab"),
    "histogramdd bins": lambda lib, F: lib.histogramdd(lib.ones(3, 2), [1 << 63, 1]),
    "tensordot": lambda lib, F: lib.tensordot(lib.ones(2, 2), lib.ones(2, 2), 1.5),
    "grid_sample": lambda lib, F: F.grid_sample(
        lib.ones(1, 1, 2, 2), lib.ones(1, 2, 2, 2), align_corners="a"
    ),
    "adaptive_avg_pool3d": lambda lib, F: F.adaptive_avg_pool3d(lib.ones(1, 1, 4, 4, 4), "a"),
    "adaptive_max_pool1d": lambda lib, F: F.adaptive_max_pool1d(lib.ones(1, 1, 4), [3, "a"]),
    "channel_shuffle": lambda lib, F: F.channel_shuffle(lib.ones(1, 4, 2), 1.5),
    "pixel_shuffle": lambda lib, F: F.pixel_shuffle(lib.ones(4, 1, 1), 1 << 63),
    "pixel_unshuffle": lambda lib, F: F.pixel_unshuffle(lib.ones(1, 2, 2), 1 << 63),
    "hash_tensor": lambda lib, F: lib.hash_tensor("a"),
    "hash_tensor dim": lambda lib, F: lib.hash_tensor(lib.ones(3), dim=[0, "a"]),
    "hash_tensor range": lambda lib, F: lib.hash_tensor(lib.ones(()), dim=5),
    "gradient": lambda lib, F: lib.gradient(lib.ones(3), edge_order=1.5),
    "masked.norm": lambda lib, F: lib.masked.norm(lib.ones(3), None),
    "embedding_bag": lambda lib, F: F.embedding_bag(
        lib.tensor([0]), lib.ones(2, 2), lib.tensor([0]), padding_idx=7
    ),
    "embedding_bag indices": lambda lib, F: F.embedding_bag(
        lib.ones(1, 1, dtype=lib.float64), lib.ones(2, 2)
    ),
    "max_unpool3d": lambda lib, F: F.max_unpool3d(
        lib.ones(1, 1, 1, 1, 1), lib.zeros(1, 1, 1, 1, 1, dtype=lib.int64), 2, (1.5, 1, 1)
    ),
    "lu": lambda lib, F: lib.lu(lib.eye(2), out=[lib.empty(0)]),
    "pad": lambda lib, F: F.pad(lib.ones(1, 3), (1, 1), mode="no such word", value=1.0),
    "batch_norm": lambda lib, F: F.batch_norm(lib.ones(2, 3), lib.ones(3), None, training=True),
}


SIZES = {
    "one kernel_size": lambda lib, F: F.fractional_max_pool2d(lib.ones(1, 1, 4, 4), 1 << 63, 2),
    "kernel_size": lambda lib, F: F.fractional_max_pool2d(lib.ones(1, 1, 4, 4), (1 << 63, 1), 2),
    "one output_size": lambda lib, F: F.fractional_max_pool2d(lib.ones(1, 1, 4, 4), 2, 1 << 63),
    "a word": lambda lib, F: F.fractional_max_pool3d(lib.ones(1, 1, 4, 4, 4), "a", 2),
    "a word of sizes": lambda lib, F: F.fractional_max_pool2d(lib.ones(1, 1, 4, 4), 2, "a"),
    "three sizes": lambda lib, F: F.fractional_max_pool2d(lib.ones(1, 1, 4, 4), 2, (2, 2, 2)),
    "three sides": lambda lib, F: F.fractional_max_pool2d(lib.ones(1, 1, 4, 4), (2, 2, 2), 2),
    "one adaptive size": lambda lib, F: F.adaptive_avg_pool2d(lib.ones(1, 1, 4, 4), 1 << 63),
    "adaptive sizes": lambda lib, F: F.adaptive_max_pool2d(lib.ones(1, 1, 4, 4), (1 << 63, 1)),
    "unfold": lambda lib, F: F.unfold(lib.ones(()), 2),
    "unfold rows": lambda lib, F: F.unfold(lib.ones(2, 2), 2),
    "unfold one image": lambda lib, F: F.unfold(lib.ones(0, 2, 2), 2),
    "slice": lambda lib, F: lib.ops.aten.slice(lib.ones(3), 0, 0, 1, -1),
    "slice of a number": lambda lib, F: lib.ops.aten.slice(2, 0, 0, 1),
    "no number of a dtype": lambda lib, F: lib.ops.aten.sum.default(lib.ones(2), dtype=99),
    "slice_copy": lambda lib, F: lib.slice_copy(lib.ones(3), 0, 0, 1, -1),
    "slice of Python": lambda lib, F: lib.ones(3)[::-1],
    "input_dtype": lambda lib, F: lib._softmax_backward_data(lib.ones(2), lib.ones(2), 0, 3),
    "log input_dtype": lambda lib, F: lib._log_softmax_backward_data(
        lib.ones(2), lib.ones(2), 0, "a"
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_steps_are_refused_by_the_same_class(name):
    agree(SIZES[name])


@pytest.mark.parametrize("name", TYPES)
def test_functions_in_python_refuse_by_the_same_class(name):
    agree(TYPES[name])


# --- dtypes and values that kernels refuse ---


def scaled(lib, scale=1.0, **options):
    x = lib.ones(16, 16).to(lib.float8_e4m3fn)
    scale = lib.tensor(scale) if isinstance(scale, float) else scale
    return lib._scaled_mm(x, x, scale, lib.tensor(1.0), out_dtype=lib.float32, **options)


def scaled_by_lists(lib, scales=None, recipe=(0,), swizzle=(0,), **options):
    x, one = lib.ones(16, 16).to(lib.float8_e4m3fn), [lib.tensor(1.0)]
    scales = one if scales is None else scales
    given = (scales, recipe, swizzle, one, (0,), (0,), None, lib.float32)
    return lib._scaled_mm_v2(x, x, *given, **options)


def batch_norm(lib, mean, var):
    return lib.native_batch_norm(lib.ones(2, 3), None, None, mean, var, True, 0.1, 1e-5)


def chunked(lib, F, x, w, target):
    options = lib.nn.LinearCrossEntropyOptions()
    return F.linear_cross_entropy(x, w, target, options=options)


def ctc(lib, F, log_probs=None, lengths=(4,), **options):
    log_probs = lib.zeros(4, 1, 3) if log_probs is None else log_probs
    return F.ctc_loss(log_probs, lib.tensor([[1, 2]]), lengths, (2,), **options)


KERNELS = {
    "erfcx": lambda lib, F: lib.special.erfcx(lib.ones(2, dtype=lib.float16)),
    "ndtri": lambda lib, F: lib.special.ndtri(lib.ones(2, dtype=lib.bfloat16)),
    "log_ndtr": lambda lib, F: lib.special.log_ndtr(lib.ones(2, dtype=lib.float16)),
    "pdist": lambda lib, F: F.pdist(lib.ones(2, 2, dtype=lib.float16)),
    "cdist": lambda lib, F: lib.cdist(*[lib.ones(2, 2, dtype=lib.float16)] * 2),
    "cdist dtypes": lambda lib, F: lib.cdist(lib.ones(2, 2), lib.ones(2, 2, dtype=lib.float64)),
    "cdist integers": lambda lib, F: lib.cdist(lib.ones(2, 2), lib.ones(2, 2, dtype=lib.int64)),
    "cdist mode": lambda lib, F: lib.cdist(lib.ones(2, 2), lib.ones(2, 2), compute_mode=3),
    "cdist word": lambda lib, F: lib.cdist(lib.ones(2, 2), lib.ones(2, 2), compute_mode="a"),
    "dist": lambda lib, F: lib.dist(lib.tensor([1]), lib.tensor([2])),
    "rrelu": lambda lib, F: F.rrelu(lib.ones(3, dtype=lib.float16), training=True),
    "solve_triangular": lambda lib, F: lib.linalg.solve_triangular(
        lib.ones(2, 2, dtype=lib.float16), lib.ones(2, 2), upper=True
    ),
    "lengths": lambda lib, F: lib.segment_reduce(lib.ones(2), "sum", lengths=lib.ones(2)),
    "offsets": lambda lib, F: lib.segment_reduce(lib.ones(2), "sum", offsets=lib.ones(2) > 0),
    "repeats": lambda lib, F: lib.repeat_interleave(lib.ones(2, 1)),
    "repeats of a number": lambda lib, F: lib.ones(()).repeat_interleave(lib.tensor([1, 2]), dim=0),
    "searchsorted": lambda lib, F: lib.searchsorted(*[lib.ones(2, dtype=lib.complex64)] * 2),
    "sum": lambda lib, F: lib.sum(lib.ones(2), keepdim=True),
    "mean": lambda lib, F: lib.ones(2).mean(keepdim=True),
    "prod": lambda lib, F: lib.prod(lib.ones(2), keepdim=True),
    "nll_loss": lambda lib, F: F.nll_loss(lib.ones(7, 5), lib.tensor([0, 1]), lib.ones(3)),
    "soft_margin_loss": lambda lib, F: F.soft_margin_loss(lib.ones(2) > 0, lib.ones(2)),
    "soft_margin_loss integers": lambda lib, F: F.soft_margin_loss(lib.tensor([1]), lib.ones(1)),
    "soft_margin_loss sizes": lambda lib, F: F.soft_margin_loss(lib.ones(2, 1), lib.ones(2, 3)),
    "multilabel": lambda lib, F: F.multilabel_soft_margin_loss(lib.ones(1, 2) > 0, lib.ones(1, 2)),
    "no index": lambda lib, F: lib._unsafe_masked_index(lib.ones(2), lib.ones(2) > 0, [], 0),
    "one statistic": lambda lib, F: batch_norm(lib, lib.zeros(3), None),
    "statistics": lambda lib, F: batch_norm(lib, lib.zeros(3).double(), lib.ones(3).double()),
    "scales": lambda lib, F: scaled(lib, lib.ones(3)),
    "scales of float64": lambda lib, F: scaled(lib, lib.tensor(1.0, dtype=lib.float64)),
    "out of products": lambda lib, F: scaled(lib, out=lib.empty(0, dtype=lib.int32)),
    "lists of scales": lambda lib, F: scaled_by_lists(lib, []),
    "recipe": lambda lib, F: scaled_by_lists(lib, recipe="a"),
    "unknown recipe": lambda lib, F: scaled_by_lists(lib, recipe=(7,)),
    "swizzle": lambda lib, F: scaled_by_lists(lib, swizzle=(1,)),
    "contraction": lambda lib, F: scaled_by_lists(lib, contraction_dim=(1,)),
    "chunked dtypes": lambda lib, F: chunked(
        lib, F, lib.ones(2, 2), lib.ones(2, 2).double(), lib.tensor([0, 1])
    ),
    "chunked integers": lambda lib, F: chunked(
        lib, F, *[lib.ones(2, 2, dtype=lib.int64)] * 2, lib.tensor([0, 1])
    ),
    "ctc of integers": lambda lib, F: ctc(lib, F, lib.zeros(4, 1, 3, dtype=lib.int64)),
    "ctc of a number": lambda lib, F: ctc(lib, F, lib.zeros(())),
    "ctc lengths": lambda lib, F: ctc(lib, F, lengths=[1.5]),
    "ctc long": lambda lib, F: ctc(lib, F, lengths=[1 << 63]),
    "ctc infinity": lambda lib, F: ctc(lib, F, zero_infinity="a"),
    "to_sparse": lambda lib, F: lib.ones(2, 2).to_sparse(1 << 63),
    "dimension of aten": lambda lib, F: lib.ops.aten._safe_softmax(lib.ones(2), 1 << 63),
}


@pytest.mark.parametrize("name", KERNELS)
def test_dtypes_and_values_without_kernels_are_refused_by_the_same_class(name):
    agree(KERNELS[name])


B = [[1.0, 2.0], [3.0, 5.0]]
TAKEN = {
    "solve_triangular": lambda lib, F: lib.linalg.solve_triangular(
        lib.tensor([[2.0, 1.0], [0.0, 4.0]]), lib.tensor(B, dtype=lib.float64), upper=True
    ),
    "dist": lambda lib, F: lib.dist(lib.tensor([1, 5]), lib.tensor([2.5, 1.0])),
    "cholesky": lambda lib, F: lib.cholesky(lib.ones(0, 3)),
    "searchsorted": lambda lib, F: lib.searchsorted(lib.ones(2), lib.ones(0, dtype=lib.complex64)),
    "masked by numbers": lambda lib, F: lib._unsafe_masked_index(
        lib.tensor(B), lib.tensor([2, 0]), [lib.tensor([0, 1])], 0
    ),
    "bias": lambda lib, F: F.conv_transpose1d(
        lib.tensor([B]), lib.ones(2, 2, 1), lib.tensor([1, 2])
    ),
    "soft_margin_loss": lambda lib, F: F.soft_margin_loss(
        lib.tensor([0.5, 2.0], dtype=lib.float64) + 1j, lib.tensor([1.0, -1.0])
    ),
    "multilabel": lambda lib, F: F.multilabel_soft_margin_loss(lib.tensor(B), 2),
    "complex target": lambda lib, F: F.binary_cross_entropy_with_logits(
        lib.tensor(B), lib.tensor(B) + 1j, lib.tensor([1.0, 2.0])
    ),
    "out of products": lambda lib, F: scaled(lib, 3.0, out=lib.empty(32, 16).t()[:, ::2]),
    "lists of scales": lambda lib, F: scaled_by_lists(lib, [lib.tensor(3.0)]),
    "sum": lambda lib, F: lib.sum(lib.tensor(B), None, True),
    "number of a dtype": lambda lib, F: lib.ops.aten.sum.default(lib.tensor(B), dtype=7),
    "number of bfloat16": lambda lib, F: lib.ops.aten.sum.default(lib.tensor(B), dtype=15),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TAKEN)
def test_arguments_that_pytorch_converts_give_its_results(name):
    ours, theirs = (TAKEN[name](lib, lib.nn.functional) for lib in (taeda, torch))
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.stride() == theirs.stride()
    torch.testing.assert_close(torch.tensor(ours.tolist()), torch.tensor(theirs.tolist()))
