"""Modules of PyTorch's with a leading underscore that libraries import, beside PyTorch's own."""

import importlib
import inspect
import io
import itertools
import logging
import pickle

import numpy as np
import pytest

import taeda
from taeda.fx.experimental.proxy_tensor import make_fx

torch = pytest.importorskip("torch")
BOTH = (taeda, torch)
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64".split()


def module(lib, name):
    return importlib.import_module(f"{lib.__name__}.{name}")


def outcome(call, *args, **kwargs):
    """What a call gives, or its error's type and message, comparable between libraries."""
    try:
        return str(call(*args, **kwargs))
    except Exception as error:
        return type(error).__name__, str(error)


# --- _prims_common ---


@pytest.mark.parametrize("kind", "DEFAULT NO_OPMATH INT_TO_FLOAT ALWAYS_BOOL COMPLEX_TO_FLOAT "
                         "BOOL_TO_LONG".split())  # fmt: skip
def test_elementwise_dtypes_are_pytorchs(kind):
    def all_of(lib):
        common = module(lib, "_prims_common")
        kinds = common.ELEMENTWISE_TYPE_PROMOTION_KIND
        tensors = [lib.ones(shape, dtype=getattr(lib, d)) for d in DTYPES for shape in ((2,), ())]
        given = [*tensors, True, 1, 1.5, 1j]
        found = []
        for pair in itertools.product(given, given):
            found.append(outcome(
                common.elementwise_dtypes, *pair, type_promotion_kind=kinds[kind]))  # fmt: skip
        return found

    assert all_of(taeda) == all_of(torch)


def test_questions_about_dtypes_are_answered_as_pytorch_does():
    names = (
        "is_boolean_dtype is_integer_dtype is_float_dtype is_complex_dtype is_low_precision_dtype "
        "is_grad_dtype corresponding_real_dtype corresponding_complex_dtype get_computation_dtype "
        "dtype_to_type"
    ).split()

    def all_of(lib):
        common = module(lib, "_prims_common")
        return {
            (name, d): outcome(getattr(common, name), getattr(lib, d))
            for name in names
            for d in [*DTYPES, "complex128"]
            if not (name.startswith("corresponding") and d in DTYPES[:6])
            and not (name == "corresponding_real_dtype" and not d.startswith("complex"))
            and not (name == "corresponding_complex_dtype" and d.startswith("complex"))
        }

    assert all_of(taeda) == all_of(torch)


def test_pairs_of_dtypes_have_pytorchs_order():
    def all_of(lib):
        common = module(lib, "_prims_common")
        dtypes = [getattr(lib, d) for d in DTYPES]
        pairs = list(itertools.product([*dtypes, None], dtypes))
        kinds = list(itertools.product((bool, int, float, complex), repeat=2))
        return (
            [outcome(common.get_higher_dtype, *pair) for pair in pairs],
            [outcome(common.can_safe_cast_to, cast_to=a, cast_from=b)
             for a, b in itertools.product(dtypes, dtypes)],
            [outcome(common.is_weakly_lesser_type, *pair) for pair in kinds],
            [outcome(common.get_higher_type, *pair) for pair in kinds],
            [outcome(common.type_to_dtype, kind) for kind in (bool, int, float, complex)],
        )  # fmt: skip

    assert all_of(taeda) == all_of(torch)


@pytest.mark.parametrize(
    "call",
    [
        ("canonicalize_dim", 3, -1),
        ("canonicalize_dim", 3, 3),
        ("canonicalize_dim", 0, 0),
        ("canonicalize_dim", 0, 0, False),
        ("canonicalize_dims", 3, (-1, 0)),
        ("canonicalize_dims", 3, -2),
        ("infer_size", (2, -1), 6),
        ("infer_size", (2, 3), 6),
        ("make_contiguous_strides_for", (2, 3, 4)),
        ("make_contiguous_strides_for", (2, 3, 4), False),
        ("make_contiguous_strides_for", (0, 3)),
        ("make_channels_last_strides_for", (2, 3, 4, 5)),
        ("make_channels_last_strides_for", (2, 3, 4, 5, 6)),
        ("make_channels_last_strides_for", (2, 3, 4)),
        ("compute_required_storage_length", (2, 3), (5, 1), 1),
        ("compute_required_storage_length", (2, 0), (5, 1), 1),
        ("reduction_dims", (2, 3, 4), None),
        ("reduction_dims", (2, 3, 4), (0, -1)),
        ("reduction_dims", (2, 3, 4), (0, -3)),
        ("compute_reduction_output_shape", (2, 3, 4), (1,)),
        ("is_valid_permutation", 3, (2, 0, 1)),
        ("is_valid_permutation", 3, (2, 2, 1)),
        ("apply_perm", "abc", (2, 0, 1)),
        ("invert_perm", (2, 0, 1)),
        ("is_same_shape", (1, 2), (1, 2)),
        ("is_expandable_to", (1, 3), (2, 2, 3)),
        ("is_expandable_to", (2, 3), (2, 2)),
        ("extract_shape_from_varargs", ((2, 3),)),
        ("extract_shape_from_varargs", (2, 3)),
        ("extract_dims_from_varargs", ((2, 3),)),
        ("set_correction", True, None),
        ("set_correction", False, None),
        ("set_correction", None, 2),
        ("set_correction", True, 2),
        ("validate_no_repeating_dims", (1, 1)),
        ("prod", (2, 3, 4)),
    ],
)
def test_rules_of_shapes_are_pytorchs(call):
    name, *args = call
    own, theirs = (outcome(getattr(module(lib, "_prims_common"), name), *args)
                   for lib in BOTH)  # fmt: skip
    assert own == theirs


def test_reduction_dtypes_are_pytorchs():
    def all_of(lib):
        common = module(lib, "_prims_common")
        return [
            outcome(common.reduction_dtypes, lib.ones(2, dtype=getattr(lib, d)), kind)
            for d in DTYPES
            for kind in common.REDUCTION_OUTPUT_TYPE_KIND
        ]

    assert all_of(taeda) == all_of(torch)


def test_suggested_memory_formats_are_pytorchs():
    def all_of(lib):
        common = module(lib, "_prims_common")
        images = lib.ones(2, 3, 4, 5)
        given = [images, images.to(memory_format=lib.channels_last), lib.ones(2, 3).t()]
        return [(str(common.suggest_memory_format(x)), common.is_contiguous(x)) for x in given]

    assert all_of(taeda) == all_of(torch)


def test_operators_in_python_promote_and_take_out():
    def run(lib):
        common, wrappers = module(lib, "_prims_common"), module(lib, "_prims_common.wrappers")

        @wrappers.out_wrapper()
        @wrappers.elementwise_type_promotion_wrapper(
            type_promoting_args=("a", "b"),
            type_promotion_kind=common.ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT,
        )
        def mean(a, b):
            return (a + b) / 2

        out = lib.empty(0)
        result = mean(lib.tensor([1, 2]), 3, out=out)
        half = mean(lib.ones(2, dtype=lib.bfloat16), 2.5)
        return out.tolist(), result is out, str(half.dtype), half.tolist()

    assert run(taeda) == run(torch)


# --- _decomp and _refs ---


def decomposed():
    return module(taeda, "_decomp").core_aten_decompositions()


def test_make_fx_records_what_a_table_decomposes_into():
    table = decomposed()
    graph = make_fx(lambda x: taeda.nn.functional.silu(x), decomposition_table=table)
    traced = graph(taeda.ones(2))
    names = [str(node.target) for node in traced.graph.nodes if node.op == "call_function"]
    assert names and "aten.silu.default" not in names
    np.testing.assert_allclose(traced(taeda.ones(1)).numpy(), [1 / (1 + np.exp(-1))], rtol=1e-6)


def test_tables_of_decompositions_are_added_to_and_taken_from():
    decomp = module(taeda, "_decomp")
    table = {}

    @decomp.register_decomposition([taeda.ops.aten.silu, taeda.ops.aten.mish.default], table)
    def mine(x):
        return x

    assert {taeda.ops.aten.silu.default, taeda.ops.aten.mish.default} <= set(table)
    with pytest.raises(RuntimeError, match="duplicate registrations for aten"):
        decomp.register_decomposition(taeda.ops.aten.mish.default, table)(mine)
    decomp.remove_decompositions(table, [taeda.ops.aten.silu])
    assert list(table) == [taeda.ops.aten.mish.default]
    found = decomp.get_decompositions([taeda.ops.aten.gelu, taeda.ops.aten.mm])
    assert list(map(str, found)) == ["aten.gelu.default", "aten.gelu.out"]
    with pytest.raises(AssertionError):
        decomp.get_decompositions([], type="other")


@pytest.mark.parametrize(
    "name",
    [n for n in "add softmax linalg.norm special.zeta fft.fft nn.functional.gelu where "
     "broadcast_shapes addcmul native_layer_norm square".split() if n],
)  # fmt: skip
def test_references_are_there_under_pytorchs_names(name):
    for lib in BOTH:
        package, _, last = name.rpartition(".")
        owner = module(lib, f"_refs.{package}".rstrip("."))
        assert callable(getattr(owner, last))


# --- _functorch ---


def test_modules_of_functorch_hold_pytorchs_names():
    modules = {
        "apis": "vmap grad grad_and_value chunk_vmap",
        "eager_transforms": "vjp jvp jacrev jacfwd hessian functionalize linearize grad_impl",
        "functional_call": "functional_call stack_module_state",
        "make_functional": "make_functional make_functional_with_buffers FunctionalModule",
    }
    for name, names in modules.items():
        for lib in BOTH:
            assert not [
                n for n in names.split() if not hasattr(module(lib, f"_functorch.{name}"), n)
            ]


def test_chunks_and_all_at_once_agree():
    x = taeda.arange(12.0).view(6, 2)
    chunked = module(taeda, "_functorch.apis").chunk_vmap(taeda.sum, chunks=4)
    assert chunked(x).tolist() == x.sum(1).tolist()


def test_a_call_of_vmap_step_by_step():
    def run(lib):
        parts = module(lib, "_functorch.vmap")
        core = module(lib, "_C._functorch") if lib is torch else lib._C._functorch

        def f(x, y):
            return x * y + 1, x.sum()

        args = (lib.arange(6.0).view(2, 3), lib.ones(3))
        size, dims, leaves, spec = parts._process_batched_inputs((0, None), args, f)
        level = core._vmap_increment_nesting(size, "error")
        try:
            batched = parts._create_batched_inputs(dims, leaves, level, spec)
            flags = [core.is_batchedtensor(x) for x in batched]
            levels = [core.maybe_get_level(x) for x in batched]
            where = core.maybe_get_bdim(batched[0]), core.current_level()
            inner = core.get_unwrapped(batched[0]).tolist()
            found = parts._unwrap_batched(f(*batched), (0, 0), level, size, f)
        finally:
            core._vmap_decrement_nesting()
        return size, dims, flags, levels, where, inner, [y.tolist() for y in found]

    assert run(taeda) == run(torch)


def test_restored_vmap_says_where_the_batch_lies():
    def run(lib):
        call = module(lib, "_functorch.vmap").restore_vmap(
            lambda x, y: (x + y, y * 2), (0, None), 2, "error"
        )
        (first, second), dims = call(lib.ones(2, 3), lib.ones(3))
        return first.tolist(), second.tolist(), tuple(dims)

    assert run(taeda) == run(torch)


def test_modules_as_functions_of_parameters():
    def run(lib):
        parts = module(lib, "_functorch.make_functional")
        lib.manual_seed(0)
        layer = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2)).eval()
        f, params, buffers = parts.make_functional_with_buffers(layer)
        x = lib.arange(6.0).view(2, 3)
        with pytest.raises(RuntimeError, match="has buffers"):
            parts.make_functional(layer)
        g, own = parts.make_functional(lib.nn.Linear(3, 1))
        models = [lib.nn.Linear(3, 1) for _ in range(4)]
        _, stacked, _ = parts.combine_state_for_ensemble(models)
        return (
            f(params, buffers, x).detach().numpy().round(5).tolist(),
            g([p * 0 for p in own], x).tolist(),
            [tuple(p.shape) for p in stacked],
            [p.requires_grad for p in stacked],
        )

    assert run(taeda) == run(torch)


def test_what_transforms_that_differentiate_keep_raises():
    with pytest.raises(NotImplementedError, match="differentiate wrap no tensors"):
        taeda._C._functorch._wrap_for_grad(taeda.ones(1), 1)


# --- parts of torch._C ---


def test_docstrings_are_added_once():
    def f():
        pass

    assert taeda._C._add_docstr(f, "Text.") is f and f.__doc__ == "Text."
    with pytest.raises(RuntimeError, match="already has a docstring"):
        taeda._C._add_docstr(f, "Other.")
    with pytest.raises(TypeError):
        taeda._C._add_docstr(f, 3)


def test_schemas_are_read():
    text = "mine::f(Tensor(a!) x, int[2] n=1, *, float? p=None) -> (Tensor, int)"

    def read(lib):
        schema = lib._C.parse_schema(text)
        assert isinstance(schema, lib._C.FunctionSchema)
        return schema.name, [
            (a.name, a.kwarg_only, a.has_default_value()) for a in schema.arguments
        ]

    assert read(taeda) == read(torch)


# --- operators that take functions ---


def test_higher_order_operators_run_what_is_registered():
    def run(lib):
        operators = module(lib, "_ops")
        key = lib._C.DispatchKey

        class Apply(operators.HigherOrderOperator):
            def __init__(self):
                super().__init__(f"apply_in_test_{lib.__name__}")

            def __call__(self, f, x):
                return super().__call__(f, x)

        apply = Apply()

        @apply.py_impl(key.CompositeImplicitAutograd)
        def run_it(f, x):
            return f(x) + 1

        with pytest.raises(TypeError, match="abstract"):
            operators.HigherOrderOperator("x")
        return apply(lambda x: x * 2, lib.ones(2)).tolist(), str(apply)[:13], apply.namespace

    assert run(taeda) == run(torch)


# --- small modules ---


def test_pickles_of_plain_values_are_read_where_they_end():
    def read(lib):
        unpickler = module(lib, "_weights_only_unpickler")
        file = io.BytesIO(pickle.dumps({"a": [1, 2.5]}, 2) + b"rest")
        first = unpickler.load(file)
        with pytest.raises(pickle.UnpicklingError):
            unpickler.load(io.BytesIO(pickle.dumps(print, 2)))
        return first

    assert read(taeda) == read(torch)


@pytest.mark.parametrize("name", "qform bform matmul".split())
def test_products_of_linear_algebra_are_pytorchs(name):
    def run(lib):
        part = module(lib, "_linalg_utils")
        x = lib.arange(6.0).view(3, 2)
        a = lib.arange(9.0).view(3, 3)
        args = {"qform": (a, x), "bform": (x, a, x), "matmul": (a.to_sparse(), x)}[name]
        return getattr(part, name)(*args).tolist()

    assert run(taeda) == run(torch)


def test_eigenvalues_come_in_the_order_asked_for():
    a = taeda.tensor([[2.0, 1.0], [1.0, 3.0]])
    part = module(taeda, "_linalg_utils")
    expected = np.linalg.eigvalsh(a.numpy())
    np.testing.assert_allclose(part.symeig(a)[0].numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(part.symeig(a, largest=True)[0].numpy(), expected[::-1], rtol=1e-6)


def test_decorators_for_the_compiler_leave_functions_alone():
    def f():
        return 3

    disable = module(taeda, "_compile")._disable_dynamo
    assert disable(f) is f and disable(recursive=False)(f) is f


def test_loggers_of_artifacts_have_names_of_their_own(caplog):
    logs = module(taeda, "_logging")
    logger = logs.getArtifactLogger("prog", "graph_breaks")
    assert logger.name == module(torch, "_logging").getArtifactLogger("prog", "graph_breaks").name
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            logs.warning_once(logger, "seen %s", "once in a test")
    assert [record.getMessage() for record in caplog.records] == ["seen once in a test"]


def test_first_vmap_passes_none_through():
    old = module(taeda, "_vmap_internals")
    found = old._vmap(lambda x: (x + 1, None), allow_none_pass_through=True)(taeda.zeros(2))
    assert found[0].tolist() == [1.0, 1.0] and found[1] is None


def test_storages_are_compared_by_identity():
    reductions = module(taeda, "multiprocessing.reductions")
    x, y = taeda.ones(2), taeda.ones(2)
    refs = [reductions.StorageWeakRef(t.untyped_storage()) for t in (x, x[1:], y)]
    assert refs[0] == refs[1] and refs[0] != refs[2] and len(set(refs)) == 2
    storage = taeda.arange(4.0).untyped_storage()
    typed = taeda.TypedStorage(wrap_storage=storage, dtype=taeda.float32, _internal=True)
    found = reductions.rebuild_tensor(taeda.nn.Parameter, typed, (1, (3,), (1,), True))
    assert type(found) is taeda.nn.Parameter and found.tolist() == [1.0, 2.0, 3.0]


def test_functions_of_attention_and_norms_are_pytorchs():
    def run(lib):
        f = lib.nn.functional
        lib.manual_seed(1)
        q, k, w, b = lib.randn(2, 3, 4), lib.randn(5, 3, 4), lib.randn(12, 4), lib.randn(12)
        packed = [x for args in ((q, q, q), (q, k, k), (q, k, k.clone()))
                  for x in f._in_projection_packed(*args, w, b)]  # fmt: skip
        apart = f._in_projection(q, k, k, w[:4], w[4:8], w[8:], b[:4], b[4:8], None)
        mask = f._canonical_mask(lib.tensor([True, False]), "m", None, "o", lib.float32)
        numbers = [x.numpy().round(4).tolist() for x in (*packed, *apart, mask)]
        words = [
            outcome(lambda: f._verify_batch_size([1, 3, 1])),
            outcome(lambda: f._verify_spatial_size([1, 3, 1])),
            outcome(
                lambda: f._unpool_output_size(lib.ones(1, 1, 3, 3), [2, 2], [2, 2], [0, 0], None)
            ),
            outcome(lambda: f._unpool_output_size(lib.ones(1, 1, 3), [2], [2], [0], [9])),
            outcome(lambda: f._mha_shape_check(lib.ones(2), q, q, None, None, 2)),
            outcome(lambda: f._mha_shape_check(q, q, q, None, None, 2)),
            outcome(lambda: f._none_or_dtype(q)),
            outcome(lambda: f._in_projection(q, k, k, w, w, w)),
        ]
        return numbers, words

    assert run(taeda) == run(torch)


def test_truncated_normal_numbers_come_from_the_function_behind_the_public_one():
    def run(lib):
        lib.manual_seed(3)
        first = lib.nn.init._no_grad_trunc_normal_(lib.empty(20), 0.0, 1.0, -2.0, 2.0)
        return first.numpy().round(5).tolist()

    assert run(taeda) == run(torch)


def test_overloaded_arguments_are_pytorchs():
    def order(lib):
        class A(lib.Tensor):
            pass

        class B(A):
            pass

        class Like:
            @classmethod
            def __torch_function__(cls, *args, **kwargs):
                return 1

        given = [A(), 3, Like(), B(), A(), lib.ones(1)]
        return [type(x).__name__ for x in lib.overrides._get_overloaded_args(given)]

    assert order(taeda) == order(torch)


@pytest.mark.parametrize("name", "_prims_common _decomp _functorch.vmap _linalg_utils".split())
def test_signatures_are_pytorchs(name):
    own, theirs = module(taeda, name), module(torch, name)
    same = {"register_decomposition", "get_decompositions", "canonicalize_dim", "infer_size"}
    for n in same & set(dir(own)) & set(dir(theirs)):
        parameters = [list(inspect.signature(getattr(m, n)).parameters) for m in (own, theirs)]
        assert parameters[0] == parameters[1], n
