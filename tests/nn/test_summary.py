"""taeda.summary and what Jupyter shows of a module."""

import re
from html.parser import HTMLParser

import pytest

import taeda as torch
from taeda import nn

pytestmark = pytest.mark.cpu_only(reason="a fixture makes the inputs on the CPU")


class Two(nn.Module):
    """Two inputs, or a dictionary of them; a layer that runs twice, and a shared one."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.norm = nn.BatchNorm1d(8)
        self.drop = nn.Dropout(0.5)
        self.again = self.first
        self.last = nn.Linear(8, 3, bias=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.calls = 0

    def forward(self, x, y=None):
        if isinstance(x, dict):
            x, y = x["x"], x["y"]
        self.calls += 1
        self.count += 1
        self.cache = x
        hidden = self.drop(self.norm(self.first(x) + self.first(y)))
        return {"logits": self.last(hidden), "hidden": (hidden, [x])}


def rows(table):
    return {row.name: row for row in table.rows}


@pytest.fixture
def inputs():
    return torch.ones(5, 4), torch.ones(5, 4)


def test_rows_tell_shapes_parameters_bytes_and_calls(inputs):
    table = torch.summary(Two(), *inputs)
    found = rows(table)
    assert found["first"].shape == "[5, 8]" and found["first"].calls == 2
    assert found["first"].parameters == 4 * 8 + 8 and found["first"].bytes == 4 * (4 * 8 + 8)
    assert found["norm"].parameters == 16 and found["norm"].bytes == 4 * (16 + 16) + 8
    assert found["last"].parameters == 24 and found["drop"].parameters == 0
    assert found[""].shape == "{logits: [5, 3], hidden: ([5, 8], ([5, 4]))}"
    assert found["again"].again and found["again"].parameters == 0
    assert table.parameters == sum(row.parameters for row in table.rows) == 40 + 16 + 24
    assert table.trainable == table.parameters
    assert table.parameter_bytes == 4 * table.parameters
    assert table.buffer_bytes == 4 * 16 + 8 + 8
    assert table.result_bytes == 4 * (2 * 40 + 40 + 40 + 15)  # the first layer ran twice


def test_inputs_may_be_several_a_dictionary_or_keywords(inputs):
    x, y = inputs
    model = Two()
    shapes = [row.shape for row in torch.summary(model, x, y).rows]
    assert [row.shape for row in torch.summary(model, {"x": x, "y": y}).rows] == shapes
    assert [row.shape for row in torch.summary(model, x=x, y=y).rows] == shapes
    with pytest.raises(TypeError, match="must be a Module, not Tensor"):
        torch.summary(x)


def test_frozen_parameters_count_as_not_trainable(inputs):
    model = Two()
    model.first.requires_grad_(False)
    assert torch.summary(model, *inputs).trainable == 40


def test_tied_weights_count_once():
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False))
    model[1].weight = model[0].weight
    table = torch.summary(model)
    assert table.parameters == 16 and [row.parameters for row in table.rows] == [0, 16, 0]
    assert table.parameter_bytes == sum(row.bytes for row in table.rows) == 64


def test_tied_weights_are_marked_where_they_stand_again():
    model = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10), nn.Linear(4, 10, bias=False))
    model[1].weight = model[2].weight = model[0].weight
    table = torch.summary(model)
    assert [row.tied for row in table.rows] == [False, False, True, True]
    assert table.parameters == sum(row.parameters for row in table.rows) == 50
    first, partly, wholly = str(table).splitlines()[3:6]
    assert re.search(r"Embedding\) +40 +160 B$", first)
    assert re.search(r"Linear\) +10 \+ shared +40 B$", partly)
    assert re.search(r"Linear\) +shared +-$", wholly)
    assert table._repr_html_().count("shared") == 2


def test_tied_buffers_are_marked():
    model = nn.Sequential(nn.BatchNorm1d(2, affine=False), nn.BatchNorm1d(2, affine=False))
    for name in ("running_mean", "running_var", "num_batches_tracked"):
        setattr(model[1], name, getattr(model[0], name))
    assert [row.tied for row in torch.summary(model).rows] == [False, False, True]


def test_the_model_is_afterwards_as_it_was(inputs):
    model = Two().train()
    model.drop.eval()
    fields = {name: dict(module.__dict__) for name, module in model.named_modules()}
    buffers = dict(model.named_buffers())
    values = {name: buffer.clone() for name, buffer in buffers.items()}
    versions = {name: buffer._version for name, buffer in buffers.items()}
    random = torch.get_rng_state()
    torch.summary(model, *inputs)
    assert {n: m.training for n, m in model.named_modules()} == {
        "": True, "first": True, "norm": True, "drop": False, "last": True,
    }  # fmt: skip
    for name, module in model.named_modules():
        assert module.__dict__ == fields[name]
    for name, buffer in model.named_buffers():
        assert buffer is buffers[name] and buffer.equal(values[name])
        assert buffer._version == versions[name]
    assert torch.get_rng_state().equal(random)
    assert model.calls == 0 and not hasattr(model, "cache")
    assert all(p.grad is None for p in model.parameters())


def test_the_model_is_as_it_was_where_it_fails(inputs):
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(5, 1)).train()
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        torch.summary(model, inputs[0])
    assert model.training and model[0].training and not model[0]._forward_hooks
    assert model[0].num_batches_tracked.item() == 0


def test_lazy_modules_stay_lazy():
    model = nn.Sequential(nn.LazyLinear(6), nn.LazyBatchNorm1d(), nn.ReLU())
    assert "lazy" in str(torch.summary(model))
    table = torch.summary(model, torch.ones(3, 2))
    assert [row.shape for row in table.rows] == ["[3, 6]"] * 4
    assert [row.lazy for row in table.rows] == [False, True, True, False]
    assert isinstance(model[0], nn.LazyLinear) and model[0].has_uninitialized_params()
    assert model(torch.ones(3, 2)).shape == (3, 6)


def test_the_text_fits_80_columns(inputs):
    class Deep(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.a_submodule_with_a_rather_long_name = Deep(depth - 1) if depth else nn.Identity()

        def forward(self, x):
            return self.a_submodule_with_a_rather_long_name(x)

    for table in (torch.summary(Deep(20), inputs[0]), torch.summary(Two(), *inputs)):
        lines = str(table).splitlines()
        assert max(map(len, lines)) == 80 and len(lines) >= len(table.rows) + 3
    assert repr(table) == str(table)
    assert re.search(r"first \(Linear\) x2 +\[5, 8\] +40 +160 B", str(table))
    assert re.search(r"again \(Linear\) +shared +-", str(table).replace("[5, 8]", ""))


class Cells(HTMLParser):
    """The texts of table cells, and whether all tags are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.cells, self.tags = [], [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open or "th" in self.open:
            self.cells[-1] += data


def test_jupyter_shows_the_table_and_the_repr(inputs):
    model = Two()
    before = Cells(model._repr_html_())
    assert before.cells[:4] == ["Layer", "Output shape", "Parameters", "Memory"]
    assert "shapes are known after" in model._repr_html_()
    shown = torch.summary(model, *inputs)
    after = Cells(model._repr_html_())
    assert len(after.cells) == 4 * (len(shown.rows) + 1)
    assert after.cells[8:12] == ["first Linear ×2", "[5, 8]", "40", "160 B"]
    assert Cells(shown._repr_html_()).cells == after.cells
    assert "(first): Linear(in_features=4" in model._repr_html_()
    assert "script" not in after.tags


def test_names_are_escaped():
    model = nn.Sequential()
    model.add_module("<b>&", nn.Linear(1, 1))
    assert Cells(model._repr_html_()).cells[8] == "<b>& Linear"


def test_other_objects_show_what_pytorch_shows():
    oracle = pytest.importorskip("torch")

    def shown(library):
        p = library.nn.Parameter(library.ones(2, 3))
        optimizer = library.optim.SGD([p], lr=0.1)
        schedule = library.optim.lr_scheduler.StepLR(optimizer, 1)
        model = library.nn.Sequential(library.nn.Linear(3, 2), library.nn.ReLU())
        objects = (p, p * 2, optimizer, model, library.ones(2).shape, model[0])
        return [repr(value) for value in objects], [
            hasattr(value, "_repr_html_") for value in (p, optimizer, schedule)
        ]

    assert shown(torch) == shown(oracle)


def test_results_count_each_call_and_layers_that_compute_without_their_parts():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(self.layer(x))

    assert torch.summary(Twice(), torch.ones(2, 4)).result_bytes == 2 * 2 * 4 * 4
    x = torch.ones(3, 1, 4)
    attention = torch.summary(nn.MultiheadAttention(4, 2), x, x, x)
    assert attention.result_bytes == (3 * 4 + 3 * 3) * 4


@pytest.mark.parametrize(
    ("args", "keywords"), [([(3,)], {}), ([[1, 3]], {}), ([], {"input_size": (3,)})]
)
def test_sizes_are_refused_with_the_way_out(args, keywords):
    with pytest.raises(TypeError, match="takes tensors, not sizes"):
        torch.summary(nn.Linear(3, 2), *args, **keywords)
