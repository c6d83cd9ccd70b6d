"""The models of bench/models, in small sizes: the numbers are PyTorch's, whatever the threads."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

WORKER = Path(__file__).resolve().parents[2] / "bench" / "models" / "worker.py"
BF16_TRAINING = {"resnet50_bf16", "gpt_bf16", "bert_bf16", "lstm_bf16"}
STEPS = 5


def check(framework, threads=1, *options, steps=STEPS):
    """What each model starts from and its first losses, by name, from a process of its own."""
    command = [sys.executable, str(WORKER), "--framework", framework, *options]
    command += ["--threads", str(threads), "--check", str(steps)]
    output = subprocess.check_output(command, text=True, env=dict(os.environ))
    found = [json.loads(line) for line in output.splitlines()]
    return {one["name"]: one for one in found}


@pytest.fixture(scope="module")
def ours():
    return check("taeda")


def test_models_start_and_train_as_in_pytorch(ours):
    pytest.importorskip("torch")
    theirs = check("torch")
    assert list(ours) == list(theirs) and len(ours) == 17
    for name, expected in theirs.items():
        assert ours[name]["weights"] == expected["weights"], name
        # Small batches through many batch norms are chaotic: in five steps of the mobilenets
        # PyTorch moves up to 6e-3 away from its own losses in float64.
        tolerance = 1e-2 if name.startswith("mobilenet") else 1e-4 if "bf16" in name else 1e-5
        losses, found = expected["losses"], ours[name]["losses"]
        if name in BF16_TRAINING:  # roundings to 8 bits, here and there in another order
            tolerance = 5e-2 if name == "resnet50_bf16" else 1e-3
        elif name.startswith("resnet"):
            # Three steps agree to the last digits, gradients too; then an activation that is 0 but
            # for its rounding lies on the other side of ReLU's kink.
            assert found[:3] == pytest.approx(losses[:3], rel=1e-6), name
            tolerance = 1e-3
        assert found == pytest.approx(losses, rel=tolerance), name
        assert name.startswith("gpt2_decode") or len(set(expected["losses"])) == STEPS


def test_losses_are_the_same_bits_with_one_and_two_threads(ours):
    two = check("taeda", threads=2)
    for name, one in ours.items():
        assert two[name]["exact"] == one["exact"], name


def test_twenty_steps_in_full_width_are_the_same_bits_with_one_and_two_threads():
    # Small batches keep this short; their kernels still share every layer's work among threads.
    for name, batch in ("resnet18", 2), ("gpt", 1):
        options = ("--model", name, "--full", "--batch", str(batch))
        one, two = (check("taeda", threads, *options, steps=20)[name] for threads in (1, 2))
        assert len(set(one["losses"])) > 10
        assert two["exact"] == one["exact"] and two["trained"] == one["trained"], name
