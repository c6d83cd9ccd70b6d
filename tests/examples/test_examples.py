"""The scripts of examples/ run as a user runs them, on part of the data, and learn."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import taeda

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FASHION_MNIST = Path("/usr/share/datasets/fashion-mnist")


def run(*command, cwd=None, timeout=300):
    """The lines a script prints; fails with its output when it fails."""
    result = subprocess.run(
        [sys.executable, *map(str, command)],
        capture_output=True, text=True, timeout=timeout, cwd=cwd, env=dict(os.environ),
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout.strip().split("\n")


@pytest.fixture(autouse=True)
def needs_images():
    if not FASHION_MNIST.exists():
        pytest.importorskip("sklearn")


def test_listing1_learns():
    lines = run(EXAMPLES / "paper_listing1.py", "--quick")
    untrained = float(lines[-4].split()[-1])
    trained = float(lines[-1].split()[-1])
    assert untrained < 0.35
    assert trained > 0.7


def test_listing2_learns(tmp_path):
    lines = run(EXAMPLES / "paper_listing2.py", "--quick", "--out", tmp_path)
    distances = [float(line.split()[-1]) for line in lines if "distance" in line]
    assert distances[-1] < 0.8 * distances[0]
    assert (tmp_path / "samples.png").read_bytes().startswith(b"\x89PNG")


def test_demo_trains_saves_and_reports(tmp_path):
    lines = run(EXAMPLES / "fashion_mnist.py", "--limit", 6400, "--epochs", 1, "--out", tmp_path)
    match = re.fullmatch(r"test accuracy (0\.\d{4}), \d+ images/s, report (.+)", lines[-1])
    assert match, lines[-1]
    assert float(match[1]) > 0.6
    assert any("a new process loads" in line and line.endswith("the same") for line in lines)
    (head,) = [line for line in lines if line.startswith("taeda ")]
    assert head.startswith(f"taeda {taeda.version.taeda}, ") and head.endswith(" weights, 1 epoch")
    columns = max(len(line) for line in lines if str(tmp_path) not in line)
    assert columns <= 80
    page = Path(match[2]).read_text()
    assert page.count("<svg") == 4
    assert page.count("data:image/png;base64,") >= 60
    assert "http" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epochs", "0"], "argument --epochs: expected 1 or more, got 0"),
        (["--epochs", "many"], "argument --epochs: invalid int value: 'many'"),
        (["--batch-size", "1"], "argument --batch-size: expected 2 or more, got 1"),
        (["--lr", "-1"], "argument --lr: expected 0.0 or more, got -1"),
        (["--limit", "100"], "--limit 100: fewer images than a batch, --batch-size 128"),
        (["--framework", "tensorflow"], "expected taeda or torch, got tensorflow"),
        (["--data", "/no/such/folder"], "--data /no/such/folder: there is no such folder"),
        (["--evaluate", "/no/such/file"], "/no/such/file cannot be read: "),
    ],
)
def test_arguments_that_the_demo_cannot_use_are_refused_in_a_sentence(arguments, words):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "fashion_mnist.py", *arguments],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode in (1, 2)
    assert words in done.stderr and "Traceback" not in done.stderr


def test_the_demo_goes_on_with_no_checkpoint_of_another_run(tmp_path):
    command = [EXAMPLES / "fashion_mnist.py", "--limit", 1280, "--out", tmp_path]
    run(*command, "--epochs", 1)
    done = subprocess.run(
        [sys.executable, *map(str, command), "--epochs", "2", "--resume"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "is of a run of 10 steps; 2 epochs of 10 batches are 20" in done.stderr


def test_demo_stops_and_goes_on(tmp_path):
    command = [EXAMPLES / "fashion_mnist.py", "--limit", 2560, "--epochs", 5, "--out", tmp_path]
    process = subprocess.Popen(
        [sys.executable, "-u", *map(str, command)],
        stdout=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background may have them ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    for line in process.stdout:
        if line.startswith("epoch 2/5"):  # several to come: time enough on a busy machine
            break
    process.send_signal(signal.SIGINT)
    rest, _ = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert "checkpoint.pt holds the last epoch" in rest

    lines = run(*command, "--resume")
    (start,) = [line for line in lines if line.startswith("going on after epoch")]
    first = int(start.split()[4]) + 1
    epochs = [int(line[6]) for line in lines if line.startswith("epoch ")]
    assert 2 <= first <= 5 and epochs == list(range(first, 6))


def test_demo_fits_80_columns_in_a_terminal(tmp_path):
    pty = pytest.importorskip("pty")
    command = [sys.executable, str(EXAMPLES / "fashion_mnist.py"), "--limit", "1280"]
    command += ["--epochs", "1", "--out", str(tmp_path / "run")]
    shown = bytearray()

    def read(fd):
        data = os.read(fd, 4096)
        shown.extend(data)
        return data

    assert os.waitstatus_to_exitcode(pty.spawn(command, read)) == 0
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[K", "", shown.decode()))
    progress = [line for line in lines if line.startswith("epoch ")]
    assert len(progress) > 1 and max(map(len, progress)) <= 80


def test_demo_says_that_there_is_nothing_to_resume(tmp_path):
    command = [EXAMPLES / "fashion_mnist.py", "--limit", 640, "--epochs", 1, "--out", tmp_path]
    lines = run(*command, "--resume")
    assert f"--resume: there is no {tmp_path}/checkpoint.pt; training from the start" in lines


def test_the_comparison_page_shows_the_same_training_under_both(tmp_path):
    pytest.importorskip("torch")
    lines = run(EXAMPLES / "compare.py", "--images", 2560, "--out", tmp_path)
    page = Path(lines[-1].removeprefix("comparison with PyTorch: ")).read_text()
    assert page.count("<svg") == 3 and "http" not in page
    difference = float(re.search(r"<b>([\d.e+-]+)</b><span>relative difference", page)[1])
    assert difference < 1e-2  # what ten steps make of the last bits of products


def test_demo_runs_on_torch(tmp_path):
    pytest.importorskip("torch")
    common = [EXAMPLES / "fashion_mnist.py", "--limit", 1280, "--epochs", 1]
    lines = run(*common, "--framework", "torch", "--out", tmp_path)
    assert lines[-1].startswith("test accuracy 0.")


PROGRAM = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(256, 4)
y = (x.sum(1, keepdim=True) > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = optim.SGD(net.parameters(), lr=0.5)
for _ in range(10):
    for batch, target in loader:
        loss = F.binary_cross_entropy_with_logits(net(batch), target)
        opt.zero_grad()
        loss.backward()
        opt.step()
right = ((net(x) > 0).float() == y).float().mean().item()
print(torch.__name__, sys.argv[1:], __name__, right > 0.95)
"""


def test_an_unmodified_program_runs(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    lines = run("-m", "taeda", script, "--flag", "3")
    assert lines[-1] == "torch ['--flag', '3'] __main__ True"
