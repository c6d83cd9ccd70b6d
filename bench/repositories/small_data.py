"""Small data in the formats that programs read: small_data.py MAKER ARGUMENT..., in their folder.

The values come from NumPy's generator with a fixed seed, so each framework reads the same bytes.
Pictures and features have a pattern of their class with noise over it: there is something to learn.
"""

from __future__ import annotations

import struct
import sys
import tarfile
from pathlib import Path

import numpy as np

random = np.random.default_rng(0)


def pictures(count: int, classes: int, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """uint8 pictures (count, *shape) and their classes: coarse patterns, enlarged, and noise."""
    coarse = random.random((classes, 4, 4, *shape[2:]))
    rows, columns = (np.arange(shape[d]) * 4 // shape[d] for d in (0, 1))
    labels = random.integers(0, classes, count)
    base = coarse[:, rows][:, :, columns][labels]
    noisy = base * 200 + random.random((count, *shape)) * 55
    return noisy.astype(np.uint8), labels


def idx(file: Path, values: np.ndarray) -> None:
    """A file of MNIST's format: magic number, big-endian sizes, bytes."""
    header = struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape)
    file.write_bytes(header + values.astype(np.uint8).tobytes())


def mnist(root: str, train: str = "1500", test: str = "300", name: str = "MNIST") -> None:
    """What torchvision.datasets.MNIST or FashionMNIST finds at `root`."""
    folder = Path(root).expanduser() / name / "raw"
    folder.mkdir(parents=True, exist_ok=True)
    images, labels = pictures(int(train) + int(test), 10, (28, 28))
    for part, chosen in ("train", slice(int(train))), ("t10k", slice(int(train), None)):
        idx(folder / f"{part}-images-idx3-ubyte", images[chosen])
        idx(folder / f"{part}-labels-idx1-ubyte", labels[chosen])


def image_folder(root: str, count: str = "32", size: str = "64", classes: str = "2") -> None:
    """JPEG files in a folder for each class."""
    from PIL import Image

    images, labels = pictures(int(count), int(classes), (int(size), int(size), 3))
    for index, (image, label) in enumerate(zip(images, labels, strict=True)):
        file = Path(root) / f"class{label}" / f"{index:04}.jpg"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(file)


def masks(images: str, labels: str, count: str = "12", size: str = "96") -> None:
    """Pictures with a bright disc each, and masks of the discs."""
    from PIL import Image

    side = int(size)
    rows, columns = np.mgrid[:side, :side]
    for index in range(int(count)):
        y, x, radius = random.integers(side // 4, side // 2, 3)
        inside = (rows - y) ** 2 + (columns - x) ** 2 < radius**2
        noisy = random.random((side, side, 3)) * 100 + inside[..., None] * 120
        Image.fromarray(noisy.astype(np.uint8)).save(Path(images) / f"{index}.png")
        Image.fromarray(inside.astype(np.uint8)).save(Path(labels) / f"{index}.png")


def cora(root: str, nodes: str = "2000", archive: str = "") -> None:
    """Cora's two text files: nodes with words and a class, and citations; an archive of them."""
    folder = Path(root)
    folder.mkdir(parents=True, exist_ok=True)
    count = int(nodes)
    labels = random.integers(0, 7, count)
    words = random.random((count, 200)) < 0.02 + 0.2 * (np.arange(200) % 7 == labels[:, None])
    names = random.permutation(count) + 1000
    lines = [
        f"{name}\t" + "\t".join(map(str, row.astype(int))) + f"\tclass_{label}\n"
        for name, row, label in zip(names, words, labels, strict=True)
    ]
    (folder / "cora.content").write_text("".join(lines))
    pairs = random.integers(0, count, (3 * count, 2))
    same = labels[pairs[:, 0]] == labels[pairs[:, 1]]
    pairs = pairs[(same | (random.random(len(pairs)) < 0.1)) & (pairs[:, 0] != pairs[:, 1])]
    pairs = np.unique(pairs, axis=0)
    cites = [f"{names[a]}\t{names[b]}\n" for a, b in pairs]
    (folder / "cora.cites").write_text("".join(cites))
    if archive:
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(folder, "cora")


def local_requests(archive: str) -> None:
    """A module `requests` beside the program, whose answer to any address is a file."""
    Path("requests.py").write_text(f"""
class get:
    def __init__(self, url, stream=False): self.raw = open({archive!r}, "rb")
    def __enter__(self): return self
    def __exit__(self, *error): self.raw.close()
""")


def wandb() -> None:
    """A module `wandb` beside the program that keeps nothing."""
    Path("wandb.py").write_text("""
class Nothing:
    def __getattr__(self, name): return Nothing()
    def __call__(self, *args, **kwargs): return Nothing()
init = Image = Histogram = Nothing()
""")


def gym() -> None:
    """A module `gym` beside the program: gymnasium's environments, seeded."""
    Path("gym.py").write_text("""
import gymnasium
def make(name):
    environment = gymnasium.make(name)
    environment.reset(seed=0)
    return environment
""")


def module(name: str, text: str) -> None:
    """A module beside the program, where a package is no longer to be had."""
    Path(f"{name}.py").write_text(text)


def text(file: str, lines: str) -> None:
    """Sentences whose words follow one another by chance."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    following = random.integers(0, 300, (300, 6))
    sentences, word = [], 0
    for _ in range(int(lines)):
        words = []
        for choice in random.integers(0, 6, 24):
            word = following[word, choice]
            words.append(f"word{word}")
        sentences.append(" " + " ".join(words) + " \n")
    Path(file).write_text("".join(sentences))


def sentence_pairs(file: str, lines: str) -> None:
    """Two sentences in each line, of few words, the second about what the first is about."""
    topics = random.integers(0, 20, int(lines))
    words = [[f"word{20 * t + k}" for k in random.integers(0, 20, 14)] for t in topics]
    pairs = [" ".join(w[:7]) + "\t" + " ".join(w[7:]) + "\n" for w in words]
    Path(file).write_text("".join(pairs))


def series(file: str, hours: str = "14400") -> None:
    """Seven hourly series of the ETT data sets: daily waves and noise."""
    import pandas

    t = np.arange(int(hours))
    names = ["HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT"]
    phases = random.random(7) * 6
    waves = np.sin(2 * np.pi * t[:, None] / 24 + phases) + random.normal(0, 0.2, (len(t), 7))
    table = pandas.DataFrame(waves.round(4), columns=names)
    table.insert(0, "date", pandas.date_range("2016-07-01", periods=len(t), freq="h"))
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(file, index=False)


def ratings(file: str, count: str = "4000") -> None:
    """MovieLens' ratings: user::film::stars::time."""
    users, films = random.integers(1, 100, int(count)), random.integers(1, 200, int(count))
    stars = 1 + (users * 7 + films * 3) % 5
    lines = [f"{u}::{f}::{s}::0\n" for u, f, s in zip(users, films, stars, strict=True)]
    Path(file).write_text("".join(lines))


def views(file: str, count: str = "106", size: str = "20") -> None:
    """Pictures of a disc, camera poses on a circle and a focal length, for radiance fields."""
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    side = int(size)
    rows, columns = np.mgrid[:side, :side] / side - 0.5
    disc = (rows**2 + columns**2 < 0.09)[..., None] * np.array([0.9, 0.4, 0.1])
    images = np.repeat(disc[None], int(count), 0).astype(np.float32)
    poses = np.repeat(np.eye(4, dtype=np.float32)[None], int(count), 0)
    for pose, angle in zip(poses, np.linspace(0, 6, int(count)), strict=True):
        c, s = np.cos(angle), np.sin(angle)
        pose[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
        pose[:3, 3] = 4 * pose[:3, 2]
    np.savez(file, images=images, poses=poses, focal=np.float32(side * 1.4))


def utterances(root: str, speakers: str = "8") -> None:
    """Mel spectrograms (utterances, 40, 180) of each speaker."""
    folder = Path(root)
    folder.mkdir(parents=True, exist_ok=True)
    for speaker in range(int(speakers)):
        voice = random.normal(-40, 10, (1, 40, 1))
        spoken = voice + random.normal(0, 3, (6, 40, 180))
        np.save(folder / f"speaker{speaker}.npy", spoken.astype(np.float32))


def voices(root: str, speakers: str = "6") -> None:
    """Mel spectrograms (frames, 80) of speakers, and a list of their names and embeddings."""
    import pickle

    listed = []
    for speaker in range(int(speakers)):
        folder = Path(root) / f"voice{speaker}"
        folder.mkdir(parents=True, exist_ok=True)
        voice = random.random((1, 80)) * 0.6
        names = [f"voice{speaker}/{index}.npy" for index in range(3)]
        for name in names:
            frames = voice + random.random((int(random.integers(50, 100)), 80)) * 0.4
            np.save(Path(root) / name, frames.astype(np.float32))
        listed.append([f"voice{speaker}", random.normal(0, 0.1, 32).astype(np.float32), *names])
    (Path(root) / "train.pkl").write_bytes(pickle.dumps(listed))


def vgg16(file: str) -> None:
    """VGG-16's weights: random convolutions; classifiers of zeros, which take no space."""
    import torch

    weights, layer, before = {}, 0, 3
    for group in ([64] * 2, [128] * 2, [256] * 3, [512] * 3, [512] * 3):
        for after in group:
            scale = (2 / (9 * before)) ** 0.5
            kernel = random.normal(0, scale, (after, before, 3, 3)).astype(np.float32)
            weights[f"features.{layer}.weight"] = torch.from_numpy(kernel)
            weights[f"features.{layer}.bias"] = torch.zeros(after)
            before, layer = after, layer + 2
        layer += 1
    for layer, (after, before) in (0, (4096, 25088)), (3, (4096, 4096)), (6, (1000, 4096)):
        weights[f"classifier.{layer}.weight"] = torch.zeros(1, 1).expand(after, before)
        weights[f"classifier.{layer}.bias"] = torch.zeros(1).expand(after)
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    torch.save(weights, file)


def move(old: str, new: str) -> None:
    """Moves the files of one folder into another."""
    for file in Path(old).iterdir():
        file.rename(Path(new) / file.name)


def replace(file: str, old: str, new: str) -> None:
    """Another value in a program's settings."""
    path = Path(file)
    text = path.read_text()
    if old not in text:
        raise SystemExit(f"{file} has no {old!r}")
    path.write_text(text.replace(old, new))


def link(path: str, name: str) -> None:
    """Another name of a folder."""
    Path(name).symlink_to(path)


def folder(*paths: str) -> None:
    """Folders that a program writes to."""
    for path in paths:
        Path(path).mkdir(parents=True, exist_ok=True)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
