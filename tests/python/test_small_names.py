"""Small names of PyTorch's modules: what they give, beside PyTorch where it is installed."""

import pytest

import taeda


@pytest.fixture(params=["taeda", "torch"])
def torch(request):
    return pytest.importorskip(request.param)


def test_averages_of_lists_are_those_of_single_models(torch):
    swa = torch.optim.swa_utils
    means, new = [torch.ones(2), torch.zeros(3)], [torch.full((2,), 4.0), torch.full((3,), 8.0)]
    swa.get_swa_multi_avg_fn()(means, new, torch.tensor(3))
    assert [m.tolist() for m in means] == [[1.75] * 2, [2.0] * 3]


def test_types_of_results_have_a_second_name_and_are_trees(torch):
    types, tree = torch.return_types, torch.utils._pytree
    assert types.sort_out.__name__.startswith("sort") and types.histogram_out
    result = torch.max(torch.tensor([[1.0, 3.0], [2.0, 0.0]]), 0)
    assert [leaf.tolist() for leaf in tree.tree_leaves(result)] == [[2.0, 3.0], [1, 0]]
    with pytest.raises(AttributeError):
        types.no_such_out  # noqa: B018


def test_a_function_may_run_inside_of_autocast(torch):
    layer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)
    inside = torch.amp.autocast_mode.autocast_decorator(
        torch.autocast("cpu", dtype=torch.bfloat16), layer.forward
    )
    assert inside(x).dtype == torch.bfloat16 and inside.__name__ == "forward"
    assert layer(x).dtype == torch.float32


def test_the_default_backend_is_kept(torch):
    if torch.__name__ == "torch":
        pytest.importorskip("torch._dynamo")
    assert torch.compiler.get_default_backend() == "inductor"
    try:
        torch.compiler.set_default_backend("eager")
        assert torch.compiler.get_default_backend() == "eager"
    finally:
        torch.compiler.set_default_backend("inductor")


def test_an_unknown_default_backend_is_refused():
    with pytest.raises(Exception, match="no_such"):
        taeda.compiler.set_default_backend("no_such")
    assert taeda.compiler.get_default_backend() == "inductor"


def test_parameters_are_changed_in_one_way(torch):
    future = importlib_future(torch)
    assert not future.get_overwrite_module_params_on_conversion()
    assert not future.get_swap_module_params_on_conversion()
    future.set_overwrite_module_params_on_conversion(False)
    future.set_swap_module_params_on_conversion(False)


def importlib_future(torch):
    import importlib

    return importlib.import_module(f"{torch.__name__}.__future__")


def test_another_way_is_refused():
    future = importlib_future(taeda)
    for name in ("overwrite_module", "swap_module"):
        with pytest.raises(NotImplementedError, match=r"leave the flag False"):
            getattr(future, f"set_{name}_params_on_conversion")(True)


def test_steps_of_gradient_scalers_have_states(torch):
    states = torch.amp.grad_scaler.OptState
    assert [(s.name, s.value) for s in states] == [("READY", 0), ("UNSCALED", 1), ("STEPPED", 2)]


def test_results_of_the_cuda_runtime_have_names(torch):
    assert (torch.cuda.cudaStatus.SUCCESS, torch.cuda.cudaStatus.ERROR_NOT_READY) == (0, 34)
    assert issubclass(torch.cuda.CudaError, RuntimeError)


def test_attention_has_no_other_implementations():
    attention = taeda.nn.attention
    assert attention.current_flash_attention_impl() is None
    assert attention.list_flash_attention_impls() == []
    with pytest.raises(NotImplementedError, match="one implementation of attention"):
        attention.activate_flash_attention_impl("FA4")
