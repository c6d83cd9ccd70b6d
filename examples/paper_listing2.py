"""A generative adversarial network: two models, two optimizers, and a `detach` between them.

After Listing 2 of "PyTorch: An Imperative Style, High-Performance Deep Learning Library" (Paszke
et al., 2019, arXiv 1912.01703). The discriminator learns to tell real images from made ones; the
generator learns to be taken for real. `fake.detach()` keeps the discriminator's step from
reaching into the generator.

    python examples/paper_listing2.py            # some minutes; writes runs/gan/samples.png
    python examples/paper_listing2.py --quick    # a few seconds, on part of the images
"""

import argparse
import importlib
import os

import datasets
import report

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--framework", default="taeda", help="the module to train with: taeda or torch")
parser.add_argument("--quick", action="store_true")
parser.add_argument("--out", default=os.path.join("runs", "gan"))
args = parser.parse_args()

torch = importlib.import_module(args.framework)
nn = importlib.import_module(f"{args.framework}.nn")
optim = importlib.import_module(f"{args.framework}.optim")

NOISE = 64


def create_generator():
    """Noise to 28 x 28 values between -1 and 1."""
    return nn.Sequential(
        nn.Linear(NOISE, 256),
        nn.LeakyReLU(0.2),
        nn.Linear(256, 512),
        nn.BatchNorm1d(512),
        nn.LeakyReLU(0.2),
        nn.Linear(512, 28 * 28),
        nn.Tanh(),
    )


def create_discriminator():
    """28 x 28 values to the log-odds that the image is real."""
    return nn.Sequential(
        nn.Linear(28 * 28, 512),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(512, 256),
        nn.LeakyReLU(0.2),
        nn.Dropout(0.3),
        nn.Linear(256, 1),
    )


torch.manual_seed(0)
discriminator = create_discriminator()
generator = create_generator()
optim_d = optim.Adam(discriminator.parameters(), lr=2e-4, betas=(0.5, 0.999))
optim_g = optim.Adam(generator.parameters(), lr=2e-4, betas=(0.5, 0.999))
loss = nn.BCEWithLogitsLoss()


def step(real):
    """One step of both models on a batch of real images; returns their losses."""
    n = len(real)
    real_label, fake_label = torch.ones(n, 1), torch.zeros(n, 1)

    # (1) The discriminator: real images should score 1, made ones 0.
    optim_d.zero_grad()
    error_real = loss(discriminator(real), real_label)
    error_real.backward()
    fake = generator(torch.randn(n, NOISE))
    error_fake = loss(discriminator(fake.detach()), fake_label)
    error_fake.backward()
    optim_d.step()

    # (2) The generator: what it made should score 1.
    optim_g.zero_grad()
    error_g = loss(discriminator(fake), real_label)
    error_g.backward()
    optim_g.step()
    return (error_real + error_fake).item(), error_g.item()


def distance(images):
    """How far the mean made image is from the mean real one: the root mean square difference."""
    generator.eval()
    with torch.no_grad():
        made = generator(torch.randn(500, NOISE))
    generator.train()
    return (made.mean(0) - images.mean(0)).pow(2).mean().sqrt().item()


def samples(path, rows=8, columns=16):
    generator.eval()
    with torch.no_grad():
        made = generator(torch.randn(rows * columns, NOISE))
    sheet = made.reshape(rows, columns, 28, 28).permute(0, 2, 1, 3).reshape(rows * 28, columns * 28)
    report.save_png(path, sheet.add(1).mul(127.5).round().to(torch.uint8).tolist())


def main():
    _, _, (images, _), _ = datasets.load(torch)
    if args.quick:
        images = images[:4096]
    images = images.flatten(1).float() / 127.5 - 1
    print(f"untrained: distance of the mean images {distance(images):.4f}")
    for epoch in range(2 if args.quick else 12):
        sums, steps = [0.0, 0.0], 0
        for batch in torch.randperm(len(images)).split(128):
            errors = step(images[batch])
            sums, steps = [a + b for a, b in zip(sums, errors)], steps + 1
        print(
            f"epoch {epoch + 1}: discriminator loss {sums[0] / steps:.4f}, generator loss "
            f"{sums[1] / steps:.4f}, distance of the mean images {distance(images):.4f}",
            flush=True,
        )
    os.makedirs(args.out, exist_ok=True)
    samples(os.path.join(args.out, "samples.png"))
    print(f"samples in {os.path.join(args.out, 'samples.png')}")


if __name__ == "__main__":
    main()
