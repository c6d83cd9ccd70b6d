"""What subclasses of recurrent layers in other libraries call: against PyTorch's layers."""

import pickle

import pytest

import taeda

torch = pytest.importorskip("torch")

OPTIONS = [
    {},
    {"num_layers": 2, "bidirectional": True},
    {"bias": False, "batch_first": True},
    {"proj_size": 2, "num_layers": 2},
]


def made(lib, options, name="LSTM"):
    return getattr(lib.nn, name)(4, 3, **options)


@pytest.mark.parametrize("options", OPTIONS)
def test_flat_weights_are_the_parameters_in_pytorchs_order(options):
    ours, theirs = made(taeda, options), made(torch, options)
    assert ours._flat_weights_names == theirs._flat_weights_names
    assert all(
        weight is getattr(ours, name)
        for name, weight in zip(ours._flat_weights_names, ours._flat_weights, strict=True)
    )
    assert [tuple(w.shape) for w in ours._flat_weights] == [
        tuple(w.shape) for w in theirs._flat_weights
    ]
    assert list(ours.state_dict()) == list(theirs.state_dict())
    assert "_flat_weights" not in vars(ours) and "_flat_weights" not in vars(
        pickle.loads(pickle.dumps(ours))
    )


def test_flat_weights_can_be_replaced():
    layer = taeda.nn.GRU(4, 3)
    layer._flat_weights = [taeda.nn.Parameter(w.detach() + 1) for w in layer._flat_weights]
    assert layer._flat_weights[0] is layer.weight_ih_l0
    with pytest.raises(ValueError, match="shorter"):
        layer._flat_weights = layer._flat_weights[:1]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("packed", [False, True])
def test_expected_sizes_are_pytorchs(options, packed):
    ours, theirs = made(taeda, options), made(torch, options)
    shape = (7, 4) if packed else (2, 5, 4)
    sizes = [3, 3, 1] if packed else None
    for method in ("get_expected_hidden_size", "get_expected_cell_size"):
        found = [
            getattr(layer, method)(lib.ones(shape), lib.tensor(sizes) if packed else None)
            for lib, layer in ((taeda, ours), (torch, theirs))
        ]
        assert tuple(found[0]) == tuple(found[1])


def test_forward_arguments_are_checked_as_in_pytorch():
    for lib in (taeda, torch):
        layer, x = lib.nn.LSTM(4, 3, batch_first=True), lib.ones(2, 5, 4)
        state = (lib.zeros(1, 2, 3), lib.zeros(1, 2, 3))
        layer.check_forward_args(x, state, None)
        with pytest.raises(RuntimeError, match=r"Expected hidden\[1\] size \(1, 2, 3\)"):
            layer.check_forward_args(x, (state[0], lib.zeros(1, 3, 3)), None)
        with pytest.raises(RuntimeError, match="input_size"):
            layer.check_forward_args(lib.ones(2, 5, 3), state, None)
        with pytest.raises(RuntimeError, match=r"Expected hidden size \(1, 2, 3\)"):
            lib.nn.GRU(4, 3).check_forward_args(lib.ones(5, 2, 4), lib.zeros(1, 1, 3), None)


def test_states_are_permuted_along_the_batch():
    h = taeda.arange(6.0).reshape(1, 3, 2)
    order = taeda.tensor([2, 0, 1])
    assert taeda.nn.GRU(4, 2).permute_hidden(h, order).tolist() == h[:, order].tolist()
    first, second = taeda.nn.LSTM(4, 2).permute_hidden((h, h + 1), order)
    assert first.tolist() == h[:, order].tolist() and second.tolist() == (h + 1)[:, order].tolist()
    assert taeda.nn.GRU(4, 2).permute_hidden(h, None) is h


def test_a_subclass_with_a_forward_of_its_own_computes_what_the_layer_does():
    class Own(taeda.nn.LSTM):
        def forward(self, x):
            zeros = taeda.zeros(self.get_expected_hidden_size(x, None))
            self.check_forward_args(x, (zeros, zeros), None)
            return taeda._VF.lstm(
                x, (zeros, zeros), self._flat_weights, self.bias, self.num_layers, self.dropout,
                self.training, self.bidirectional, self.batch_first,
            )[0]  # fmt: skip

    own = Own(4, 3, num_layers=2, bidirectional=True)
    layer = taeda.nn.LSTM(4, 3, num_layers=2, bidirectional=True)
    layer.load_state_dict(own.state_dict())
    x = taeda.randn(5, 2, 4)
    taeda.testing.assert_close(own(x), layer(x)[0])
