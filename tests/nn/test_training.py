"""A whole training run, number for number with PyTorch's."""

import pytest

import taeda


def train(torch):
    torch.manual_seed(7)
    model = torch.nn.Sequential(
        # A bias before a batch norm has no gradient but rounding, which Adam would blow up.
        torch.nn.Conv2d(1, 4, 3, padding=1, bias=False),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(inplace=True),
        torch.nn.MaxPool2d(2),
        torch.nn.Dropout(0.25),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 16, 10),
    )
    images = torch.randn(40, 1, 8, 8)
    labels = torch.randint(0, 10, (40,))
    data = torch.utils.data.TensorDataset(images, labels)
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    losses = []
    for _ in range(3):
        for x, y in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
        schedule.step()
    with torch.no_grad():
        losses.append(model.eval()(images).sum().item())
    return losses


def test_training_equals_pytorchs():
    torch = pytest.importorskip("torch")
    assert train(taeda) == pytest.approx(train(torch), rel=1e-3, abs=1e-3)


def test_training_lowers_the_loss():
    losses = train(taeda)
    assert sum(losses[-4:-1]) < sum(losses[:3])
