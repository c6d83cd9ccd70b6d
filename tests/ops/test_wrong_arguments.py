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


@pytest.mark.parametrize("name", TYPES)
def test_functions_in_python_refuse_by_the_same_class(name):
    agree(TYPES[name])
