"""Several processes train one model: the example, and a program written for PyTorch."""

import re

import pytest
from tests.examples.test_examples import EXAMPLES, FASHION_MNIST, run

METHODS = ["fork", "spawn", "forkserver"]


@pytest.fixture
def images():
    if not FASHION_MNIST.exists():
        pytest.importorskip("sklearn")


@pytest.mark.usefixtures("images")
@pytest.mark.parametrize("method", METHODS)
def test_the_processes_train_one_model(method, tmp_path):
    command = [EXAMPLES / "hogwild.py", "--quick", "--epochs", 2, "--method", method]
    lines = run(*command, "--out", tmp_path)
    (untrained,) = [line for line in lines if line.startswith("untrained")]
    found = re.fullmatch(r"(\d+) steps of 2 processes: test accuracy (0\.\d+)", lines[-2])
    assert found, lines
    assert float(untrained.split()[-1]) < 0.35 and float(found[2]) > 0.6
    assert lines[-1] == "the checkpoint gives the same accuracy"
    each = [line for line in lines if line.startswith("process")]
    assert len(each) == 4 and {line.split(",")[0] for line in each} == {"process 0", "process 1"}
    torch = pytest.importorskip("torch")
    state = torch.load(tmp_path / "hogwild.pt")
    assert state["3.weight"].shape == (64, 16 * 12 * 12)


@pytest.mark.usefixtures("images")
def test_the_example_runs_on_torch():
    pytest.importorskip("torch")
    command = [EXAMPLES / "hogwild.py", "--quick", "--epochs", 1, "--framework", "torch"]
    assert "the checkpoint gives the same accuracy" in run(*command)


# In the manner of the MNIST example of pytorch/examples: processes of one's own, a loader in each.
PROGRAM = """
import torch
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 32)
        self.fc2 = nn.Linear(32, 3)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def data():
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(1200, 8, generator=generator)
    return x, x[:, :3].argmax(1)


def train(rank, seed, model, device, dataset, options):
    torch.manual_seed(seed + rank)
    torch.set_num_threads(1)
    loader = DataLoader(dataset, **options)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
    model.train()
    for _ in range(12):
        for x, target in loader:
            optimizer.zero_grad()
            F.nll_loss(model(x.to(device)), target.to(device)).backward()
            optimizer.step()


if __name__ == "__main__":
    mp.set_start_method("METHOD", force=True)
    torch.manual_seed(1)
    model, (x, target) = Net().to("cpu"), data()
    model.share_memory()
    processes = []
    for rank in range(2):
        options = {"batch_size": 32, "shuffle": True}
        args = (rank, 1, model, "cpu", TensorDataset(x, target), options)
        process = mp.Process(target=train, args=args)
        process.start()
        processes.append(process)
    for process in processes:
        process.join()
    assert all(process.exitcode == 0 for process in processes)
    model.eval()
    print(torch.__name__, (model(x).argmax(1) == target).float().mean().item())
"""


@pytest.mark.parametrize("method", METHODS)
def test_a_program_for_pytorch_runs(method, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM.replace("METHOD", method))
    name, found = run("-m", "taeda", script)[-1].split()
    assert name == "torch" and float(found) > 0.9
