"""Hogwild: several processes train one model in shared memory at once, without locks.

After section 5.4 (multiprocessing) of "PyTorch: An Imperative Style, High-Performance Deep Learning
Library" (Paszke et al., 2019, arXiv 1912.01703) and the algorithm of Niu, Recht, Re and Wright,
"Hogwild!: A Lock-Free Approach to Parallelizing Stochastic Gradient Descent" (2011, arXiv
1106.5730). Every process reads the parameters, computes gradients of its own, and adds its step to
the parameters that all of them share. One process's step may overwrite a part of another's; it
converges anyway.

    python examples/hogwild.py                 # two processes, about 0.86 after a minute
    python examples/hogwild.py --quick --processes 3 --method fork
"""

import argparse
import importlib
import os
import tempfile

import datasets


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--framework", default="taeda", help="the module: taeda or torch")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--method", default="spawn", choices=["fork", "spawn", "forkserver"])
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--out", help="folder of the checkpoint; by default it is thrown away")
    parser.add_argument("--quick", action="store_true", help="train on part of the images")
    return parser.parse_args()


def make_model(torch):
    """28 x 28 grey values to ten scores."""
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 16, kernel_size=5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 12 * 12, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


def accuracy(torch, model, images, labels):
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def train(rank, args, model, images, labels, steps):
    """What each process does: its own batches and optimizer, everybody's parameters.

    Args:
        model, images, labels: in shared memory, nothing of them was copied.
        steps: int64, one element a process: how many it has made.
    """
    torch = importlib.import_module(args.framework)
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.rate, momentum=0.5)
    for epoch in range(args.epochs):
        mine = torch.randperm(len(labels))[rank :: args.processes]
        total, n = 0.0, 0
        for batch in mine.split(args.batch):
            loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps[rank] += 1
            total, n = total + loss.item(), n + 1
        # With its end in one piece, since others print at the same time.
        print(f"process {rank}, epoch {epoch + 1}: loss {total / n:.4f}\n", end="", flush=True)


def main():
    args = parse()
    torch = importlib.import_module(args.framework)
    mp = importlib.import_module(f"{args.framework}.multiprocessing")
    torch.manual_seed(0)
    _, _, (images, labels), (test_images, test_labels) = datasets.load(torch)
    if args.quick:
        images, labels = images[:6000], labels[:6000]
        test_images, test_labels = test_images[:1000], test_labels[:1000]
    images, test_images = (images.float() / 255).share_memory_(), test_images.float() / 255

    model = make_model(torch)
    model.share_memory()
    steps = torch.zeros(args.processes, dtype=torch.int64).share_memory_()
    before = accuracy(torch, model, test_images, test_labels)
    print(f"untrained: test accuracy {before:.4f}", flush=True)
    mp.start_processes(
        train,
        (args, model, images, labels.share_memory_(), steps),
        nprocs=args.processes,
        start_method=args.method,
    )
    found = accuracy(torch, model, test_images, test_labels)
    print(f"{steps.sum().item()} steps of {args.processes} processes: test accuracy {found:.4f}")

    with tempfile.TemporaryDirectory() as scratch:
        path = os.path.join(args.out or scratch, "hogwild.pt")
        torch.save(model.state_dict(), path)
        again = make_model(torch)
        again.load_state_dict(torch.load(path))
        same = accuracy(torch, again, test_images, test_labels) == found
        print(f"the checkpoint gives {'the same' if same else 'ANOTHER'} accuracy", flush=True)


if __name__ == "__main__":
    main()
