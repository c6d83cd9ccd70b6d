"""Every public name of PyTorch's main modules can be read, and dir() lists no name that cannot."""

import importlib
import types

import pytest

import taeda

MODULES = (
    "torch torch.Tensor torch.nn torch.nn.functional torch.optim torch.linalg torch.fft".split()
)
# What PyTorch's modules have imported for themselves, and strings that its docstrings are made of.
OWN = set(
    """
    builtins cpp ctypes glob platform textwrap windows torch math warnings importlib np inspect os
    sys Optional threading functools dataclasses annotations grad Callable Any TypeVar TYPE_CHECKING
    profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 swap_in_optimizer_params_and_state
    common_notes common_args multi_dim_common factory_common_args reproducibility_notes
    sparse_support_notes tf32_notes BroadcastingList1 BroadcastingList2 BroadcastingList3 DType
    GRID_SAMPLE_INTERPOLATION_MODES GRID_SAMPLE_PADDING_MODES Tensor assert_int_or_pair
    boolean_dispatch handle_torch_function has_torch_function has_torch_function_unary
    has_torch_function_variadic
    """.split()
)


def found(of, name):
    value = of
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_pytorchs_names_are_here(name):
    theirs, mine = found(pytest.importorskip("torch"), name), found(taeda, name)
    public = {n for n in dir(theirs) if not n.startswith("_")} - OWN
    assert sorted(n for n in public if not hasattr(mine, n) and reached(mine, n) is None) == []


def reached(owner, name):
    """What a name is, where reading it raises: properties of objects do."""
    return vars(owner).get(name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_what_can_be_read(name):
    owner = found(taeda, name)
    if isinstance(owner, types.ModuleType):
        assert [n for n in dir(owner) if not hasattr(owner, n)] == []


REFUSED = {
    "Tensor.q_scale": "no quantized tensors",
    "Tensor.to_padded_tensor": "nested_tensor makes one",
    "Tensor.index": "index with tensors",
    "native_norm": "vector_norm",
    "nn.functional.scaled_mm": "_scaled_mm",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_only_raises_says_what_to_use(name):
    function = found(taeda, f"taeda.{name}")
    assert function._only_raises
    with pytest.raises(NotImplementedError, match=REFUSED[name]):
        function(taeda.ones(2), 1.0)


def test_quantized_layers_can_be_imported():
    assert taeda.nn.quantized is importlib.import_module("taeda.nn.quantized")
    with pytest.raises(NotImplementedError, match="quantized"):
        taeda.nn.quantized.Linear(2, 2)
