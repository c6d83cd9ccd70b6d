"""Private names that libraries use, and keywords by PyTorch's names."""

import pytest

import taeda

torch = pytest.importorskip("torch")


def test_compiled_programs_have_no_graph_and_say_why():
    module = taeda.jit.script(taeda.nn.ReLU())
    traced = taeda.jit.trace(lambda x: x + 1, taeda.ones(1))
    for program in (module, traced):
        assert not hasattr(program, "graph") and not hasattr(program, "code")
        assert getattr(program, "graph", None) is None
        with pytest.raises(NotImplementedError, match="no script compiler"):
            _ = program.graph
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = module.absent


def test_a_compiled_module_is_as_long_as_its_module():
    layers = taeda.nn.Sequential(taeda.nn.ReLU(), taeda.nn.ReLU())
    assert len(taeda.compile(layers)) == 2
    assert not taeda.compile(taeda.nn.Sequential()) and taeda.compile(taeda.nn.ReLU())
    with pytest.raises(TypeError):
        len(taeda.compile(taeda.nn.ReLU()))


def test_gradients_of_softmax_are_pytorchs():
    g, x = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    for name, y in (
        ("_softmax_backward_data", x.softmax(1)),
        ("_log_softmax_backward_data", x.log_softmax(1)),
    ):
        wanted = getattr(torch, name)(g, y, 1, torch.float64)
        found = getattr(taeda, name)(
            taeda.tensor(g.tolist(), dtype=taeda.float64),
            taeda.tensor(y.tolist(), dtype=taeda.float64), 1, taeda.float64,
        )  # fmt: skip
        assert torch.allclose(torch.tensor(found.tolist(), dtype=torch.float64), wanted)


@pytest.mark.parametrize("dim", [0, 1])
def test_weight_norm_is_pytorchs(dim):
    v, g = torch.randn(3, 4), torch.rand((3, 1) if dim == 0 else (1, 4))
    found = taeda._weight_norm(taeda.tensor(v.tolist()), taeda.tensor(g.tolist()), dim)
    assert torch.allclose(torch.tensor(found.tolist()), torch._weight_norm(v, g, dim))


def test_products_of_bytes_are_exact():
    a, b = torch.randint(-128, 128, (17, 8)), torch.randint(-128, 128, (8, 16))
    found = taeda._int_mm(taeda.tensor(a.tolist()).char(), taeda.tensor(b.tolist()).char())
    assert found.dtype == taeda.int32 and found.tolist() == (a @ b).tolist()
    with pytest.raises(RuntimeError, match="int8"):
        taeda._int_mm(taeda.ones(2, 2), taeda.ones(2, 2))


def test_lists_of_tensors_take_scalars_in_a_tensor_and_a_base():
    def results(lib):
        x, y = [lib.full((2,), 3.0), lib.full((1,), 5.0)], [lib.ones(2), lib.full((1,), 2.0)]
        scale = lib.tensor([2.0, 3.0])
        yield lib._foreach_addcmul(x, y, y, scale)
        yield lib._foreach_addcdiv(x, y, y, scale)
        yield lib._foreach_pow(2.0, y)
        for name in ("addcmul", "addcdiv"):
            yield getattr(lib, f"_foreach_{name}_")(x, y, y, scale)
        yield lib._foreach_copy_(x, y)
        yield lib._foreach_add_(x, y)
        yield x

    for ours, theirs in zip(results(taeda), results(torch), strict=True):
        assert type(ours) is type(theirs)
        assert [t.tolist() for t in ours] == [t.tolist() for t in theirs]
    with pytest.raises(RuntimeError, match="dimension 1"):
        taeda._foreach_addcmul([taeda.ones(1)], [taeda.ones(1)], [taeda.ones(1)], taeda.tensor(2.0))


def test_modules_are_given_as_often_as_they_occur_where_asked():
    layer = taeda.nn.ReLU()
    both = taeda.nn.Sequential(layer, layer)
    assert list(both.modules()) == [both, layer]
    assert list(both.modules(remove_duplicate=False)) == [both, layer, layer]


def test_keywords_have_pytorchs_names():
    assert taeda.overrides.is_tensor_like(inp=taeda.ones(1))
    mixture = taeda.distributions.MixtureSameFamily(
        taeda.distributions.Categorical(taeda.ones(2)),
        taeda.distributions.Normal(taeda.zeros(2), taeda.ones(2)),
    )
    assert mixture.log_prob(x=taeda.tensor(0.0)).item() == pytest.approx(-0.9189385)


def test_a_scaler_tells_where_gradients_overflowed():
    w = taeda.ones(2, requires_grad=True)
    optimizer = taeda.optim.SGD([w], lr=0.5)
    scaler = taeda.amp.GradScaler("cpu", init_scale=4.0)
    scaler._lazy_init_scale_growth_tracker(taeda.device("cpu"))
    assert scaler._scale.item() == 4
    scaler.scale((w * taeda.tensor([1.0, float("inf")])).sum()).backward()
    scaler.unscale_(optimizer)
    (found,) = scaler._found_inf_per_device(optimizer).values()
    state = scaler._per_optimizer_states[id(optimizer)]
    assert found.item() == 1 and state["stage"] is taeda.amp.grad_scaler.OptState.UNSCALED
    scaler.step(optimizer)
    assert w.tolist() == [1, 1]
    scaler.update()
    assert scaler.get_scale() == 2 and not scaler._per_optimizer_states


def test_optimizers_have_texts_for_the_options_that_all_have():
    from taeda.optim import optimizer

    for option in ("params", "foreach", "fused", "capturable", "differentiable", "maximize"):
        assert getattr(optimizer, f"_{option}_doc").startswith(f"{option} (")


def test_contiguity_is_known_of_every_tensor():
    from taeda._prims_common import is_contiguous_or_false

    assert is_contiguous_or_false(taeda.ones(2, 3))
    assert not is_contiguous_or_false(taeda.ones(2, 3).t())


def test_kinds_of_scales_have_pytorchs_values():
    for name in ("ScalingType", "SwizzleType"):
        ours, theirs = getattr(taeda.nn.functional, name), getattr(torch.nn.functional, name)
        assert ours is getattr(taeda.nn.functional, name)
        assert {m.name: m.value for m in ours} == {
            n: m.value for n, m in theirs.__members__.items()
        }
    assert taeda._disable_dynamo(len) is len
