"""Strides of results that are not row-major: those of PyTorch, whose libraries leave them so."""

import warnings

import pytest

import taeda

torch = pytest.importorskip("torch")


def pair(*shape, dtype="float64", layout="dense"):
    theirs = torch.randn(*shape, dtype=getattr(torch, dtype), generator=torch.manual_seed(0))
    ours = taeda.from_numpy(theirs.numpy().copy())
    if layout == "transposed":
        return ours.permute(2, 0, 1), theirs.permute(2, 0, 1)
    if layout == "sliced":
        return ours[:, 1:, ::2], theirs[:, 1:, ::2]
    return ours, theirs


def assert_same_layout(ours, theirs):
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert tuple(ours.stride()) == tuple(theirs.stride())
    near = torch.from_dlpack(ours.detach().contiguous().resolve_conj())
    assert torch.allclose(near, theirs.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("layout", ["dense", "transposed", "sliced"])
@pytest.mark.parametrize("dim", [(0,), (1,), (-1,), (0, 1), (2, 0), (1, 2), (0, 1, 2)])
def test_transforms_lay_their_dimensions_innermost(dim, layout):
    real, theirs_real = pair(5, 4, 7, layout=layout)
    complex_, theirs_complex = pair(5, 4, 7, dtype="complex128", layout=layout)
    for name in ("fftn", "ifftn", "irfftn", "hfftn"):
        ours = getattr(taeda.fft, name)(complex_, dim=dim)
        assert_same_layout(ours, getattr(torch.fft, name)(theirs_complex, dim=dim))
    for name in ("fftn", "ifftn", "rfftn", "ihfftn"):
        ours = getattr(taeda.fft, name)(real, dim=dim)
        assert_same_layout(ours, getattr(torch.fft, name)(theirs_real, dim=dim))


def test_a_resized_out_of_a_factorization_is_column_major():
    ours, theirs = pair(2, 3, 3)
    for name in ("inv_ex", "qr", "lu_factor_ex", "ldl_factor", "eigh", "eig", "cholesky_ex"):
        results = []
        for lib, x in ((taeda, ours), (torch, theirs)):
            x = x @ x.mT if name in ("cholesky_ex", "eigh") else x
            function = getattr(lib.linalg, name)
            outs = [lib.zeros(1, dtype=made.dtype) for made in function(x)]
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(x, out=tuple(outs))
            results.append([tuple(out.stride()) for out in outs])
        assert results[0] == results[1], name


def test_a_resized_out_of_a_transform_is_row_major():
    ours, theirs = pair(4, 3, 5)
    outs = taeda.zeros(0, dtype=taeda.complex128), torch.zeros(0, dtype=torch.complex128)
    taeda.fft.fft(ours, dim=0, out=outs[0])
    torch.fft.fft(theirs, dim=0, out=outs[1])
    assert_same_layout(*outs)


ELEMENTWISE = {
    "square": lambda lib, x: (lib.square, x),
    "deg2rad": lambda lib, x: (lib.deg2rad, x),
    "rad2deg": lambda lib, x: (lib.rad2deg, x),
    "angle": lambda lib, x: (lib.angle, x),
    "div": lambda lib, x: (lib.div, x, x),
    "maximum": lambda lib, x: (lib.maximum, x, x),
    "clamp": lambda lib, x: (lib.clamp, x, x, x),
    "polygamma": lambda lib, x: (lib.polygamma, 2, x),
    "mvlgamma": lambda lib, x: (lib.mvlgamma, x + 9, 2),
    "logit": lambda lib, x: (lib.logit, x),
    "logit with eps": lambda lib, x: (lib.logit, x, 1e-3),
    "ndtr": lambda lib, x: (lib.special.ndtr, x),
    "log_ndtr": lambda lib, x: (lib.special.log_ndtr, x),
    "i0": lambda lib, x: (lib.i0, x),
    "i1": lambda lib, x: (lib.special.i1, x),
    "bessel_j0": lambda lib, x: (lib.special.bessel_j0, x),
    "airy_ai": lambda lib, x: (lib.special.airy_ai, x),
    "modified_bessel_i0": lambda lib, x: (lib.special.modified_bessel_i0, x),
    "spherical_bessel_j0": lambda lib, x: (lib.special.spherical_bessel_j0, x),
    "hermite_polynomial_h": lambda lib, x: (lib.special.hermite_polynomial_h, x, x),
    "chebyshev_polynomial_t": lambda lib, x: (lib.special.chebyshev_polynomial_t, x, 2),
}


@pytest.mark.parametrize("layout", ["transposed", "sliced"])
@pytest.mark.parametrize("name", ELEMENTWISE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_a_resized_out_of_an_elementwise_operator(name, layout, dtype):
    outs = []
    for lib, x in zip((taeda, torch), pair(5, 4, 7, layout=layout), strict=True):
        function, *arguments = ELEMENTWISE[name](lib, x)
        outs.append(lib.zeros(1, dtype=getattr(lib, dtype)))
        function(*arguments, out=outs[-1])
    assert tuple(outs[0].shape) == tuple(outs[1].shape)
    assert tuple(outs[0].stride()) == tuple(outs[1].stride())


@pytest.mark.parametrize("layout", ["dense", "transposed"])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1, None])
@pytest.mark.parametrize("q", [0.5, [0.2, 0.7]])
@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
def test_quantiles(name, q, dim, keepdim, layout):
    found = []
    for lib, x in zip((taeda, torch), pair(3, 4, 2, layout=layout), strict=True):
        ranks = lib.tensor(q, dtype=lib.float64)
        function, out = getattr(lib, name), lib.zeros(1, dtype=lib.float64)
        found.append(function(x, ranks, dim, keepdim=keepdim))
        function(x, ranks, dim, keepdim=keepdim, out=out)
        assert out.is_contiguous()
    lies = [[x.stride(d) for d in range(x.dim()) if x.size(d) > 1] for x in found]
    assert lies[0] == lies[1]
    assert torch.allclose(torch.from_dlpack(found[0].contiguous()), found[1])


def test_no_difference_is_a_copy():
    for lib, x in zip((taeda, torch), pair(3, 4), strict=True):
        leaf = x.requires_grad_()
        y = lib.diff(leaf, n=0)
        assert not y.is_leaf and y.data_ptr() != leaf.data_ptr()


@pytest.mark.parametrize("dim", [0, 1, (0, 2), ()])
@pytest.mark.parametrize("keepdim", [False, True])
def test_hash_tensor_is_row_major(dim, keepdim):
    ours, theirs = (x.hash_tensor(dim, keepdim=keepdim) for x in pair(5, 4, 7, layout="transposed"))
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert tuple(ours.stride()) == tuple(theirs.stride())
    assert ours.view(taeda.int64).tolist() == theirs.view(torch.int64).tolist()


@pytest.mark.parametrize("shapes", [((3, 3), (3, 3)), ((4, 3), (4, 2)), ((3, 4), (3, 2))])
@pytest.mark.parametrize("batch", [(), (2,)])
def test_least_squares_leave_columns(shapes, batch):
    a, theirs_a = pair(*batch, *shapes[0])
    b, theirs_b = pair(*batch, *shapes[1])
    ours = taeda.linalg.lstsq(a, b).solution
    assert_same_layout(ours, torch.linalg.lstsq(theirs_a, theirs_b).solution)


@pytest.mark.parametrize("adjoint", [False, True])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_solutions_of_factored_systems(left, adjoint, dtype):
    a, theirs_a = pair(3, 3, dtype=dtype)
    b, theirs_b = pair(*((2, 3, 4) if left else (2, 4, 3)), dtype=dtype)
    options = {"left": left, "adjoint": adjoint}
    ours = taeda.linalg.lu_solve(*taeda.linalg.lu_factor(a), b, **options)
    theirs = torch.linalg.lu_solve(*torch.linalg.lu_factor(theirs_a), theirs_b, **options)
    assert_same_layout(ours, theirs)


@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.filterwarnings("ignore:torch.triangular_solve")
def test_both_results_of_triangular_solve_are_column_major(transpose):
    a, theirs_a = pair(3, 3)
    b, theirs_b = pair(3, 2)
    ours = taeda.triangular_solve(b, a, transpose=transpose)
    theirs = torch.triangular_solve(theirs_b, theirs_a, transpose=transpose)
    for one, other in zip(ours, theirs, strict=True):
        assert_same_layout(one, other)


def test_finite_differences_are_row_major():
    ours, theirs = pair(4, 5)
    for one, other in zip(taeda.gradient(ours), torch.gradient(theirs), strict=True):
        assert_same_layout(one, other)


# Of transposed, permuted and channels-last tensors: t.T, p and c.
AS_INPUT = """
lib.flip(t, (0,))
lib.flip(t, ())
lib.flip(p, (0, 2))
lib.flip(c, (3,))
lib.flip(t[::2], (0,))
lib.flip(e, (0,))
lib.fliplr(t)
lib.flipud(t)
lib.rot90(t, 2)
lib.rot90(c, 1, [2, 3])
lib.rot90(c, 2, [2, 3])
lib.abs(p + 1j)
lib.angle(p)
lib.conj_physical(p)
lib.conj_physical(p + 1j)
lib.frexp(p).mantissa
lib.frexp(p).exponent
lib.frexp(p[:, :, ::2]).exponent
lib.polar(p, p)
lib.polar(p, p.mT.mT[0])
lib.complex(p, p[0])
lib.complex(p[0], p)
lib.complex(p[0].contiguous(), p)
lib.special.bessel_j0(p)
lib.special.chebyshev_polynomial_t(p, p[0])
lib.unravel_index(p.long().abs(), (2, 3))[1]
1 / (p + 1j)
lib.sort(t).values
lib.sort(t, 0).indices
lib.sort(c, dim=1, stable=True).values
lib.sort(e).values
lib.msort(t)
lib.argsort(t)
p[:, two]
p[:, :, two]
p[two]
p.transpose(1, 2)[:, two]
p.transpose(1, 2)[:, :, two]
p[:, :1, two]
p[:, two, two]
p[two, :, two]
p[::2, two]
e[:, two]
c[two]
c[:, two]
c[:, :, two]
c[:, :, :, two]
c[:, :, two, two]
c[:, two, :, two]
c[:, two, 1:3]
F.pixel_shuffle(many, 2)
F.pixel_unshuffle(many, 2)
F.channel_shuffle(many, 2)
F.pixel_shuffle(many.transpose(2, 3), 2)
"""
ROW_MAJOR = """
lib.angle(p + 1j)
lib.rot90(t, 1)
lib.rot90(t, 3)
lib.rot90(t, 0)
lib.masked_fill(t, t > 0, 1)
lib.masked_fill(t, t > 0, lib.tensor(1.))
lib.masked_fill(t, (t > 0)[0], 1)
lib.masked_fill(c, lib.tensor(True), 1)
t.scatter(0, zeros, t)
t.scatter(0, zeros, 1.)
t.scatter(0, zeros, 1., reduce="add")
t.scatter(0, zeros, t, reduce="multiply")
t.scatter_add(0, zeros, t)
t.index_add(0, lib.tensor([0]), t[:1])
t.index_copy(0, lib.tensor([0]), t[:1])
t.renorm(2, 0, 1.)
lib.pow(2, t)
2. ** t
lib.pow(1, t)
lib._foreach_pow(2, [t])[0]
F.logsigmoid(t)
F.logsigmoid(c)
F.rms_norm(t, (2,))
F.rms_norm(t, (2,), t[0])
F.rrelu(t.abs(), training=True)
F.rrelu(t)
lib.segment_reduce(t, "sum", lengths=lib.tensor([[1, 1], [0, 2], [2, 0]]), axis=1)
lib.segment_reduce(p, "max", lengths=lib.tensor([[1, 1], [0, 2], [2, 0], [1, 1]]), axis=1)
lib.segment_reduce(t, "mean", offsets=lib.tensor([[0, 1, 2], [0, 1, 2], [0, 1, 2]]), axis=1)
lib.segment_reduce(t, "sum", lengths=lib.tensor([1, 2]), axis=0)
"""
# Without elements, with gaps, conjugated.
OTHERS = """
lib.nonzero(t * 0)
lib.argwhere(p * 0)
lib.linalg.lstsq(lib.zeros(2, 0, 0), lib.zeros(2, 0, 2)).solution
lib.unique(lib.zeros(3, 0, 2), dim=1)
lib.fft.fft2(e)
lib.fft.ifft2(e)
lib.fft.rfft2(e)
lib.fft.fftn(p[:, :1].expand(4, 5, 3))
lib.select_scatter(g, g[0], 0, 1)
lib.slice_scatter(g, g[:1], 0, 1, 2)
lib.diagonal_scatter(g, g[0])
lib.select_scatter(e, e[0], 0, 1)
lib.linalg.solve_triangular(z.mH, w, upper=True)
lib.linalg.solve_triangular(z.mH, w.mH, upper=True, left=False)
lib.linalg.solve_triangular(z.mT.conj(), w, upper=True)
lib.linalg.solve_triangular(z.conj(), w, upper=True)
lib.linalg.solve_triangular(z.mH, w.expand(2, 3, 2), upper=True)
lib.svd(t, compute_uv=False).V
lib.svd(w, some=False, compute_uv=False).V
lib.svd(w, compute_uv=False).U
lib.conv_tbc(p.contiguous(), lib.ones(2, 3, 4, dtype=p.dtype), lib.ones(4, dtype=p.dtype), 1)
"""


def named(lib):
    x = lib.arange(120, dtype=lib.float64).view(2, 3, 4, 5) / 60 - 1
    last = {"memory_format": lib.channels_last}
    return {
        "lib": lib,
        "F": lib.nn.functional,
        "t": x[0, 0, :2, :3].contiguous().T,
        "p": x[:, :, :, 0].contiguous().permute(2, 0, 1),
        "c": x.to(**last),
        "e": x[0, 0, :1].expand(3, 5),
        "g": x[0, 0, :, ::2],
        "z": x[0, 0, :3, :3] + 1j * x[1, 0, :3, :3],
        "w": x[0, 0, :3, :2] + 0j,
        "many": (lib.arange(192, dtype=lib.float64) / 192).view(2, 8, 4, 3)[..., :2].to(**last),
        "two": lib.tensor([1, 0]),
        "zeros": lib.zeros(3, 2, dtype=lib.int64),
    }


@pytest.mark.parametrize("text", [*AS_INPUT.strip().split("\n"), *ROW_MAJOR.strip().split("\n")])
def test_results_of_permuted_tensors_are_laid_out_as_in_pytorch(text):
    assert_same_layout(*(eval(text, named(lib)) for lib in (taeda, torch)))


@pytest.mark.parametrize("text", OTHERS.strip().split("\n"))
def test_results_without_elements_and_with_gaps_are_laid_out_as_in_pytorch(text):
    ours, theirs = (eval(text, named(lib)) for lib in (taeda, torch))
    assert_same_layout(ours, theirs)
    assert ours.is_conj() == theirs.is_conj()


@pytest.mark.parametrize("options", [{}, {"n": 6}, {"n": 3, "norm": "ortho"}, {"dim": 0}])
def test_the_inverse_transform_of_real_numbers_is_a_conjugate_view(options):
    ours, theirs = pair(4, 5)
    results = [lib.fft.ifft(x, **options) for lib, x in ((taeda, ours), (torch, theirs))]
    assert_same_layout(*results)
    assert results[0].is_conj() and results[1].is_conj()
    assert not taeda.fft.ifft(ours + 0j).is_conj() and not taeda.fft.ifftn(ours).is_conj()
    out = taeda.zeros_like(results[0].resolve_conj())
    taeda.fft.ifft(ours, out=out, **options)
    assert not out.is_conj() and out.tolist() == results[0].tolist()


@pytest.mark.parametrize("name", ["conv3d", "conv_transpose3d"])
@pytest.mark.parametrize("batch, kernel, groups", [(1, 2, 1), (2, 2, 1), (1, 4, 1), (1, 2, 2)])
@pytest.mark.parametrize("last", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "float16"])
def test_convolutions_of_volumes(name, batch, kernel, groups, last, dtype):
    results = []
    for lib in (taeda, torch):
        of = {"dtype": getattr(lib, dtype)}
        x, w = lib.ones(batch, 4, 5, 5, 5, **of), lib.ones(4, 4 // groups, *[kernel] * 3, **of)
        formats = [lib.channels_last_3d if one else lib.contiguous_format for one in last]
        x, w = (t.contiguous(memory_format=f) for t, f in zip((x, w), formats, strict=True))
        results.append(getattr(lib.nn.functional, name)(x, w, groups=groups).stride())
    assert tuple(results[0]) == tuple(results[1])


@pytest.mark.parametrize(
    "options", [(2, 0, 1, 1), (2, 0, 2, 3), ((3, 2, 1), 0, (2, 1, 1), (1, 1, 2))]
)
def test_adjoints_of_volumes_with_padded_results(options):
    stride, padding, more, dilation = options
    results = []
    for lib in (taeda, torch):
        x = lib.ones(2, 4, 3, 3, 3).contiguous(memory_format=lib.channels_last_3d)
        y = lib.conv_transpose3d(
            x, lib.ones(4, 4, 2, 2, 2), None, stride, padding, more, 1, dilation
        )
        results.append(tuple(y.stride()))
    assert results[0] == results[1]


def test_a_resized_out_of_reflections_is_row_major():
    results = []
    for lib, a in zip((taeda, torch), pair(3, 3), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = lib.zeros(1, dtype=a.dtype)
            results.append(lib.ormqr(*lib.geqrf(a), a, out=out).stride())
    assert tuple(results[0]) == tuple(results[1]) == (3, 1)


def test_pieces_of_segments_can_be_viewed():
    lengths = taeda.tensor([[1, 2], [0, 3]])
    reduced = taeda.segment_reduce(taeda.ones(2, 3), "sum", lengths=lengths, axis=1)
    assert reduced.view(-1).tolist() == [1, 2, 0, 3]
