"""The Tensor object: identity, attributes, garbage collection, subclasses, pickling."""

import copy
import gc
import pickle
import sys
import weakref

import pytest

import taeda as torch


class Points(torch.Tensor):
    """A subclass at module level, so that it can be pickled."""


def test_identity_is_kept_while_only_cpp_holds_the_tensor():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.tensor([3.0, 4.0])
    x.grad.note = "kept"
    first = id(x.grad)
    gc.collect()
    assert id(x.grad) == first
    assert x.grad.note == "kept"
    assert x.grad is x.grad


def test_base_of_a_view_is_the_object_itself():
    x = torch.tensor([1.0, 2.0])
    view = x[0:1]
    assert view._base is x
    number = id(x)
    del x
    assert id(view._base) == number


def test_memory_goes_with_the_last_reference():
    x = torch.tensor([1.0, 2.0])
    ref = weakref.ref(x)
    view = x[:1]
    del x
    assert ref() is not None, "the view's base is alive"
    del view
    assert ref() is None


def test_attributes_make_cycles_collectable():
    x = torch.tensor(1.0)
    x.cycle = [x]
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None


def test_reference_counts_stay_exact():
    x = torch.tensor([1.0, 2.0, 3.0])
    before = sys.getrefcount(x)
    for _ in range(1000):
        view = x[1:]
        view = view[0]
    del view
    assert sys.getrefcount(x) == before


def test_recycled_objects_start_clean():
    for i in range(600):
        x = torch.tensor(float(i))
        assert x.__dict__ == {}
        if i % 2:
            x.mark = i
        assert x.item() == i


def test_objects_survive_beyond_the_free_list():
    many = [torch.tensor(i) for i in range(2000)]
    assert [int(x) for x in many] == list(range(2000))
    del many
    assert torch.tensor(5).item() == 5


def test_hash_is_by_identity():
    x, y = torch.tensor(1.0), torch.tensor(1.0)
    assert hash(x) == id(x)
    assert len({x, y}) == 2


def test_subclass_construction_and_attributes():
    x = Points([1.0, 2.0])
    x.label = "a"
    assert type(x) is Points
    assert isinstance(x, torch.Tensor)
    assert x.tolist() == [1.0, 2.0]
    y = torch.tensor([1.0]).as_subclass(Points)
    assert type(y) is Points
    with pytest.raises(TypeError):
        torch.tensor([1.0]).as_subclass(int)


def test_subclass_object_survives_in_cpp():
    holder = torch.tensor([1.0], requires_grad=True)
    gradient = Points([2.0])
    gradient.label = "g"
    holder.grad = gradient
    number = id(gradient)
    del gradient
    gc.collect()
    assert type(holder.grad) is Points
    assert holder.grad.label == "g"
    assert id(holder.grad) == number


def test_subclass_with_finalizer():
    events = []

    class Watched(torch.Tensor):
        def __del__(self):
            events.append("gone")

    x = Watched([1.0])
    del x
    gc.collect()
    assert events == ["gone"]


def test_pickle_keeps_values_and_sharing():
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    both = pickle.loads(pickle.dumps([x, x[0], x]))
    assert both[0] is both[2]
    both[0][0, 0] = 9.0
    assert both[1].tolist() == [9.0, 2.0]
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    "dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.complex64]
)
def test_pickle_dtypes(dtype, protocol):
    x = torch.tensor([0, 1, 1], dtype=dtype)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert y.dtype is dtype
    assert y.tolist() == x.tolist()


def test_pickle_subclass_attributes_and_requires_grad():
    x = Points([1.0])
    x.label = "a"
    x.requires_grad_()
    y = pickle.loads(pickle.dumps(x))
    assert type(y) is Points
    assert y.label == "a"
    assert y.requires_grad


def test_deepcopy_is_independent_and_keeps_views_together():
    x = torch.tensor([1.0, 2.0])
    y, view = copy.deepcopy([x, x[:1]])
    y[0] = 7.0
    assert view.tolist() == [7.0]
    assert x.tolist() == [1.0, 2.0]


def test_copy_shares_memory():
    x = torch.tensor([1.0, 2.0])
    y = copy.copy(x)
    assert y is not x
    y[0] = 5.0
    assert x.tolist() == [5.0, 2.0]


def test_values_of_the_interface_pickle():
    things = [torch.float32, torch.device("cuda:1"), torch.Size([2, 3]), torch.strided]
    again = pickle.loads(pickle.dumps(things))
    assert again[0] is torch.float32
    assert again[1] == torch.device("cuda", 1)
    assert again[2] == torch.Size([2, 3])
    assert type(again[2]) is torch.Size
    assert again[3] is torch.strided


def test_size_is_a_tuple():
    size = torch.Size([2, 3, 4])
    assert isinstance(size, tuple)
    assert size.numel() == 24
    assert type(size[1:]) is torch.Size
    assert type(size + size) is torch.Size
    assert type(size * 2) is torch.Size
    assert repr(size) == "torch.Size([2, 3, 4])"
    with pytest.raises(TypeError):
        torch.Size(["a"])


def test_setters_check():
    x = torch.tensor([1.0, 2.0])
    with pytest.raises(RuntimeError, match="requires_grad must be a bool"):
        x.requires_grad = 1
    with pytest.raises(RuntimeError, match="floating point and complex"):
        torch.tensor([1]).requires_grad = True
    with pytest.raises(TypeError, match="expected to be a Tensor or None"):
        x.grad = 3
    with pytest.raises(RuntimeError, match="own grad"):
        x.grad = x
    with pytest.raises(RuntimeError, match="size"):
        x.grad = torch.tensor([1.0])
    with pytest.raises(RuntimeError, match="dtype"):
        x.grad = torch.tensor([1.0, 2.0], dtype=torch.float64)
    with pytest.raises(TypeError, match="Variable data has to be a tensor"):
        x.data = 3
    with pytest.raises(AttributeError):
        x.shape = (2,)


def test_threads_share_tensors():
    import threading

    x = torch.tensor([1.0, 2.0, 3.0])
    errors = []

    def work():
        try:
            for _ in range(2000):
                view = x[1:]
                assert view._base is x
                assert view.numel() == 2
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_cycles_through_hooks_and_functions_are_collected():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.result = x * 2
            return ctx.result

        @staticmethod
        def backward(ctx, gy):
            return gy * 2

    refs = []
    for _ in range(10):
        x = torch.ones(3, requires_grad=True)
        y = Double.apply(x)
        z = x * 3
        z.register_hook(lambda g, z=z: None)
        refs += [weakref.ref(x), weakref.ref(y), weakref.ref(z)]
        del x, y, z
    for _ in range(3):
        gc.collect()
    assert not any(ref() is not None for ref in refs)


def test_methods_of_other_layouts():
    oracle = pytest.importorskip("torch")
    for name in (
        "values indices coalesce is_coalesced crow_indices col_indices ccol_indices row_indices"
    ).split():
        messages = []
        for framework in (torch, oracle):
            with pytest.raises(RuntimeError) as raised:
                getattr(framework.ones(2, 3), name)()
            messages.append(str(raised.value))
        assert messages[0] == messages[1]
    x = torch.ones(2, 3)
    assert (x.sparse_dim(), x.dense_dim()) == (0, 2)
    assert x.to_dense() is x
    assert x.to_dense(torch.float64).dtype is torch.float64


def test_copies_to_meta_move_no_data():
    oracle = pytest.importorskip("torch")
    for framework in (torch, oracle):
        x = framework.ones(2, 3)
        meta = framework.empty(2, 3, device="meta")
        assert meta.copy_(x) is meta
        meta[0] = x[0]
        assert meta.is_meta
        assert x.to("meta").is_meta
        assert meta.to("meta") is meta
        assert x.clone().requires_grad_().to("meta").requires_grad
        for out_of_meta in (lambda: x.copy_(meta), lambda: meta.to("cpu")):  # noqa: B023
            with pytest.raises(NotImplementedError, match="no data"):
                out_of_meta()
        with pytest.raises(RuntimeError):
            framework.empty(2, 2, device="meta").copy_(x)
    assert torch.ones(2).to("meta").copy_(torch.ones(1)).shape == (2,)


def test_storage_made_smaller_under_a_tensor():
    """Its memory goes back to the system, its addresses do not go to anybody else."""
    x = torch.arange(1 << 20, dtype=torch.float32)
    before = torch.arange(8.0)
    for t, rest in ((x, 4), (before, 0)):
        t.untyped_storage().resize_(rest)
        assert t.untyped_storage().nbytes() == rest
        others = [torch.full((n,), 7.0) for n in (8, 1 << 10, 1 << 20)]
        t.fill_(3.0)
        assert all((o == 7).all() for o in others)
    x.untyped_storage().resize_(4 << 20)
    assert x.fill_(2.0).sum() == 2 << 20


def test_is_view():
    x = torch.zeros(2, 3)
    assert not x._is_view() and not x.clone()._is_view() and not x.contiguous()._is_view()
    assert x[0]._is_view() and x.t()._is_view() and x.expand(4, 2, 3)._is_view()
    assert not x.detach()._is_view() and not x[0].detach()._is_view()


def test_cdata_tells_tensors_apart():
    x = torch.nn.Parameter(torch.zeros(2))
    others = [x.detach(), x.data, x.view(2), x.clone()]
    assert isinstance(x._cdata, int) and x._cdata == [x][0]._cdata
    assert all(other._cdata != x._cdata for other in others)
