"""Trains a small convolutional network on Fashion-MNIST and writes a report page.

    python examples/fashion_mnist.py                      # with taeda
    python examples/fashion_mnist.py --framework torch    # the same lines under PyTorch

The images come from Debian's package dataset-fashion-mnist (60,000 for training, 10,000 for
testing); without it the script falls back to scikit-learn's 1,797 digits and says so. After every
epoch a checkpoint is written; at the end a new process loads it and must find the same accuracy.
Ctrl-C stops the training and keeps the last checkpoint; `--resume` goes on from it.
"""

import argparse
import importlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import time

import datasets
import report


def at_least(least, kind=int):
    """Reads an argument: a number, `least` or more."""

    def read(text):
        value = kind(text)
        if not value >= least:
            raise argparse.ArgumentTypeError(f"expected {least} or more, got {text}")
        return value

    read.__name__ = kind.__name__
    return read


def framework_name(text):
    if text not in ("taeda", "torch"):
        raise argparse.ArgumentTypeError(f"expected taeda or torch, got {text}")
    if importlib.util.find_spec(text) is None:
        raise argparse.ArgumentTypeError(f"{text} is not installed here")
    return text


parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument(
    "--framework", type=framework_name, default="taeda", help="what to train with: taeda or torch"
)
parser.add_argument("--data", default=datasets.FASHION_MNIST, help="folder of the four IDX files")
parser.add_argument("--epochs", type=at_least(1), help="default: 5, or 30 for the digits")
parser.add_argument("--batch-size", type=at_least(2), default=128, help="default: 128")
parser.add_argument(
    "--lr", type=at_least(0.0, float), default=0.004, help="the peak of the one-cycle schedule"
)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--limit", type=at_least(2), help="use only this many training images")
parser.add_argument("--out", default=None, help="folder of the results: runs/NAME")
parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
parser.add_argument("--evaluate", metavar="CHECKPOINT", help="only test a checkpoint")
args = parser.parse_args()
if args.limit and args.limit < args.batch_size:
    parser.error(f"--limit {args.limit}: fewer images than a batch, --batch-size {args.batch_size}")
if args.data != datasets.FASHION_MNIST and not os.path.isdir(args.data):
    parser.error(f"--data {args.data}: there is no such folder")

torch = importlib.import_module(args.framework)
nn = importlib.import_module(f"{args.framework}.nn")
optim = importlib.import_module(f"{args.framework}.optim")
data = importlib.import_module(f"{args.framework}.utils.data")


# --- model -----------------------------------------------------------------------------------


def block(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(n_out),
        nn.ReLU(),
        nn.MaxPool2d(2),
    )


class Net(nn.Module):
    """Three convolutions, each halving the image, and two linear layers: 0.23 million weights."""

    def __init__(self, classes=10):
        super().__init__()
        self.features = nn.Sequential(block(1, 16), block(16, 64), block(64, 128))
        self.classifier = nn.Sequential(
            nn.Flatten(), nn.Linear(128 * 3 * 3, 128), nn.ReLU(), nn.Dropout(0.25),
            nn.Linear(128, classes),
        )  # fmt: skip

    def forward(self, x):
        return self.classifier(self.features(x))


def normalize(images):
    """Bytes to numbers of about zero mean and unit variance."""
    return images.float().sub_(73.0).div_(90.0)


def augment(images):
    """Mirrors half of the images: a shirt is a shirt either way."""
    mirrored = torch.rand(len(images), 1, 1, 1) < 0.5
    return torch.where(mirrored, images.flip(3), images)


# --- training --------------------------------------------------------------------------------


class Progress:
    """One line on a terminal, rewritten as training goes; elsewhere a line at each epoch's end.
    It takes 80 columns at most: the bar has what the figures leave."""

    COLUMNS = 80

    def __init__(self, epochs, images):
        self.epochs, self.images = epochs, images
        self.live = sys.stdout.isatty()
        self.shown = 0.0

    def show(self, epoch, done, loss, accuracy, rate, left, last=False):
        if not last and (not self.live or time.perf_counter() - self.shown < 0.1):
            return
        self.shown = time.perf_counter()
        name = f"epoch {epoch}/{self.epochs}"
        figures = (
            f"{done * 100 // self.images:3d}%  loss {loss:.4f}  accuracy {accuracy:.4f}  "
            f"{rate:,.0f} images/s  {int(left) // 60}:{int(left) % 60:02d} left"
        )
        width = max(0, self.COLUMNS - len(name) - len(figures) - 2)
        full = done * width // self.images
        line = f"{name} {'━' * full}{'─' * (width - full)} {figures}"
        print(f"\r\033[K{line}" if self.live else line, end="", flush=True)
        if last or not self.live:
            print(flush=True)


def read_checkpoint(path):
    """What `train` saved; ends the program where the file is no such thing."""
    try:
        state = torch.load(path)
    except Exception as error:
        sys.exit(f"{path} cannot be read: {str(error).splitlines()[0]}")
    if not isinstance(state, dict) or not state.keys() >= {"model", "schedule", "history"}:
        sys.exit(f"{path} is no checkpoint of this program")
    return state


def train(model, train_set, test_set, mirror, folder, epochs):
    loader = data.DataLoader(train_set, batch_size=args.batch_size, shuffle=True, drop_last=True)
    optimizer = optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.02)
    schedule = optim.lr_scheduler.OneCycleLR(
        optimizer, max_lr=args.lr, total_steps=epochs * len(loader), pct_start=0.25
    )
    loss_function = nn.CrossEntropyLoss(label_smoothing=0.05)
    history = {"steps": [], "epochs": [], "seconds": 0.0, "images": 0}
    checkpoint = os.path.join(folder, "checkpoint.pt")
    if args.resume and not os.path.exists(checkpoint):
        print(f"--resume: there is no {checkpoint}; training from the start")
    elif args.resume:
        state = read_checkpoint(checkpoint)
        steps = state["schedule"]["total_steps"]
        if steps != epochs * len(loader):
            sys.exit(
                f"--resume: {checkpoint} is of a run of {steps} steps; {epochs} epochs of "
                f"{len(loader)} batches are {epochs * len(loader)}"
            )
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        history = state["history"]
        print(f"going on after epoch {len(history['epochs'])} of {checkpoint}")

    per_epoch = len(loader) * args.batch_size
    progress = Progress(epochs, per_epoch)
    for epoch in range(len(history["epochs"]) + 1, epochs + 1):
        model.train()
        start = time.perf_counter()
        seen, loss_sum, correct = 0, 0.0, 0
        for step, (images, labels) in enumerate(loader):
            images = normalize(images)
            if mirror:
                images = augment(images)
            output = model(images)
            loss = loss_function(output, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()

            seen += len(labels)
            loss_sum += loss.item() * len(labels)
            correct += (output.argmax(1) == labels).sum().item()
            rate = seen / (time.perf_counter() - start)
            left = (per_epoch * (epochs - epoch + 1) - seen) / rate
            progress.show(epoch, seen, loss_sum / seen, correct / seen, rate, left)
            if step % 10 == 9:
                history["steps"].append((epoch - 1 + seen / per_epoch, loss.item()))
        seconds = time.perf_counter() - start
        history["seconds"] += seconds
        history["images"] += seen
        accuracy, test_loss, _ = evaluate(model, test_set)
        left = seconds * (epochs - epoch)
        progress.show(epoch, seen, loss_sum / seen, correct / seen, seen / seconds, left, last=True)
        print(f"          test loss {test_loss:.4f}  test accuracy {accuracy:.4f}", flush=True)
        history["epochs"].append(
            {"loss": loss_sum / seen, "accuracy": correct / seen, "test_loss": test_loss,
             "test_accuracy": accuracy, "rate": seen / seconds}
        )  # fmt: skip
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(),
             "schedule": schedule.state_dict(), "history": history}, checkpoint,
        )  # fmt: skip
    return history, checkpoint


def evaluate(model, test_set):
    """Accuracy, mean loss and the class probabilities of every test image."""
    model.eval()
    probabilities, loss_sum, correct = [], 0.0, 0
    with torch.no_grad():
        for images, labels in data.DataLoader(test_set, batch_size=500):
            output = model(normalize(images))
            loss_sum += nn.functional.cross_entropy(output, labels, reduction="sum").item()
            correct += (output.argmax(1) == labels).sum().item()
            probabilities.append(output.softmax(1))
    return correct / len(test_set), loss_sum / len(test_set), torch.cat(probabilities)


def keep_earlier_run(folder):
    """A new run starts in an empty folder; what an earlier one left there moves to FOLDER.old."""
    if args.resume or not os.path.exists(os.path.join(folder, "checkpoint.pt")):
        return
    shutil.rmtree(folder + ".old", ignore_errors=True)
    os.rename(folder, folder + ".old")
    print(f"the earlier run is kept in {folder}.old")


def accuracy_in_new_process(checkpoint):
    command = [sys.executable, os.path.abspath(__file__), "--framework", args.framework]
    command += ["--data", args.data, "--evaluate", checkpoint]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return float(output.split()[-1])


def main():
    torch.manual_seed(args.seed)
    name, classes, (images, labels), (test_images, test_labels) = datasets.load(torch, args.data)
    model = Net(len(classes))
    test_set = data.TensorDataset(test_images, test_labels)
    if args.evaluate:
        model.load_state_dict(read_checkpoint(args.evaluate)["model"])
        print(f"test accuracy {evaluate(model, test_set)[0]:.6f}")
        return 0

    folder = args.out or os.path.join("runs", name.lower().replace("-", "_"))
    keep_earlier_run(folder)
    os.makedirs(folder, exist_ok=True)
    epochs = args.epochs or (5 if name == "Fashion-MNIST" else 30)
    if args.limit:
        images, labels = images[: args.limit], labels[: args.limit]
    weights = sum(p.numel() for p in model.parameters())
    version = getattr(torch.version, "taeda", torch.__version__)  # not the interface's, 2.13.0
    framework = f"{args.framework} {version}"
    planned = report.counted(epochs, "epoch")
    print(f"{name}: {len(labels):,} training and {len(test_labels):,} test images")
    print(f"{framework}, {torch.get_num_threads()} threads, {weights:,} weights, {planned}")
    try:
        history, checkpoint = train(
            model, data.TensorDataset(images, labels), test_set, name == "Fashion-MNIST",
            folder, epochs,
        )  # fmt: skip
    except KeyboardInterrupt:
        kept = os.path.join(folder, "checkpoint.pt")
        print(
            "\nstopped;", f"{kept} holds the last epoch" if os.path.exists(kept) else "no epoch yet"
        )
        return 130

    accuracy, _, probabilities = evaluate(model, test_set)
    again = accuracy_in_new_process(checkpoint)
    same = abs(again - accuracy) < 1e-6
    print(
        f"a new process loads {checkpoint}: accuracy {again:.4f}, {'the same' if same else 'OTHER'}"
    )
    rate = history["images"] / history["seconds"]
    page = report.write(
        os.path.join(folder, "report.html"),
        title=name,
        classes=classes,
        history=history,
        accuracy=accuracy,
        images=test_images.squeeze(1),
        labels=test_labels.tolist(),
        probabilities=probabilities.tolist(),
        loss_note="Training smooths its labels, so its loss lies above that of the test.",
        facts={
            "Framework": framework,
            "Threads": str(torch.get_num_threads()),
            "Processor": report.processor(),
            "Python": platform.python_version(),
            "Network": f"3 convolutions, 2 linear layers, {weights:,} weights",
            "Training": f"AdamW, one cycle to {args.lr}, batches of {args.batch_size}",
            "Images": f"{len(labels):,} for training, {len(test_labels):,} for testing",
            "Training time": f"{history['seconds']:.1f} s for {planned}",
            "Checkpoint": f"{checkpoint}, read again by a new process: accuracy {again:.4f}",
        },
    )
    print(f"test accuracy {accuracy:.4f}, {rate:.0f} images/s, report {page}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # the bar of an ASCII terminal is drawn with "?"
    sys.exit(main())
