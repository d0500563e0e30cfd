"""Data in the forms that example programs read, a few random samples each: what they would download.

  standins.py KIND FOLDER     KIND: mnist fashion cifar images coco bsds text characters cora"""

import pickle
import random
import struct
import sys
from pathlib import Path

import numpy

SAMPLES = {"train": 64, "t10k": 32}


def mnist(folder, name="MNIST"):
    """The idx files of MNIST, as torchvision has them unpacked."""
    raw = folder / name / "raw"
    raw.mkdir(parents=True)
    for part, count in SAMPLES.items():
        images, labels = numpy.random.randint(0, 256, (count, 28, 28), "uint8"), (numpy.arange(count) % 10).astype("uint8")
        (raw / (part + "-images-idx3-ubyte")).write_bytes(struct.pack(">4i", 0x803, count, 28, 28) + images.tobytes())
        (raw / (part + "-labels-idx1-ubyte")).write_bytes(struct.pack(">2i", 0x801, count) + labels.tobytes())


def fashion(folder):
    mnist(folder, "FashionMNIST")


def cifar(folder):
    """The pickled batches of CIFAR-10."""
    batches = folder / "cifar-10-batches-py"
    batches.mkdir(parents=True)
    for name in ["data_batch_%d" % (i + 1) for i in range(5)] + ["test_batch"]:
        images = numpy.random.randint(0, 256, (40, 3072), "uint8")
        (batches / name).write_bytes(pickle.dumps({"data": images, "labels": [i % 10 for i in range(40)]}))
    (batches / "batches.meta").write_bytes(pickle.dumps({"label_names": list("abcdefghij")}))


def picture(path, size):
    from PIL import Image

    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(numpy.random.randint(0, 256, (size, size, 3), "uint8")).save(path)


def images(folder):
    """torchvision's ImageFolder: two classes, train and val; a picture beside them."""
    for part in ("train", "val"):
        for label in ("cat", "dog"):
            for number in range(3):
                picture(folder / part / label / ("%d.png" % number), 64)
    picture(folder / "style.png", 64)


def bsds(folder):
    """Photographs of BSDS300."""
    for part in ("train", "test"):
        for number in range(3):
            picture(folder / "BSDS300" / "images" / part / ("%d.jpg" % number), 300)


def text(folder):
    """Three files of words, as wikitext-2 and the Penn treebank have them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test"):
        lines = (" ".join(random.choice("the a cat dog sees eats in on red old house".split()) for _ in range(12)) for _ in range(60))
        (folder / (name + ".txt")).write_text("\n".join(lines) + "\n")


def characters(folder):
    """One text, letter by letter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "input.txt").write_text("".join(random.choice("abcdefgh \n") for _ in range(400)))


def cora(folder):
    """The graph of papers of Cora: 2,000 nodes, since the programs split it at 1,600."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = ["%d\t%s\tclass%d" % (i, "\t".join(str(random.randint(0, 1)) for _ in range(8)), i % 3) for i in range(1700)]
    (folder / "cora.content").write_text("\n".join(rows) + "\n")
    edges = {(i, random.randrange(1700)) for i in range(1700)}
    (folder / "cora.cites").write_text("\n".join("%d\t%d" % e for e in sorted(edges)) + "\n")


def main():
    random.seed(0)
    numpy.random.seed(0)
    globals()[sys.argv[1]](Path(sys.argv[2]))


if __name__ == "__main__":
    main()
