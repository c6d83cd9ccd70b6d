"""The shortest answer to "does it work at all", in less than two seconds."""

import taeda as torch


def test_arithmetic():
    a = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert (a + 1).tolist() == [[2.0, 3.0], [4.0, 5.0]]
    assert (a @ a).tolist() == [[7.0, 10.0], [15.0, 22.0]]
    assert a.sum().item() == 10.0
    assert a.t()[0].tolist() == [1.0, 3.0]


def test_gradient():
    x = torch.tensor([1.0, -2.0, 3.0], requires_grad=True)
    (x * x * x).sum().backward()
    assert x.grad.tolist() == [3.0, 12.0, 27.0]


def test_a_network_learns():
    torch.manual_seed(0)
    x = torch.randn(64, 2)
    y = (x[:, 0] * x[:, 1] > 0).long()
    model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(100):
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert (model(x).argmax(1) == y).float().mean().item() > 0.95


def test_save_and_load(tmp_path):
    x = torch.arange(6.0).reshape(2, 3)
    torch.save({"x": x, "n": 3}, tmp_path / "file.pt")
    found = torch.load(tmp_path / "file.pt")
    assert found["n"] == 3
    assert found["x"].tolist() == x.tolist()


def test_bad_arguments_raise():
    for call in (
        lambda: torch.ones(2, 3) + torch.ones(4),
        lambda: torch.ones(2, 3) @ torch.ones(2, 3),
        lambda: torch.ones(2, 3).view(4),
    ):
        try:
            call()
        except RuntimeError:
            continue
        raise AssertionError("no RuntimeError")
