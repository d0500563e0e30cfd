"""Histories with one planted fault, for bisect.py: a training program whose text is made from choices.

Each piece of the program has texts that compute the same bits; a refactoring commit takes another of them, renames a word, or moves a definition. Other
commits add comments, prints, files. One commit takes the text that is wrong. Merges join branches that changed other pieces; broken commits do not run.
"""
import random
import re

MODEL = """import torch
from torch import nn
{model_import}

class Norm(nn.Module):
{norm_doc}    def __init__(self, width, eps={eps}):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
{norm}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
{scores}
        mixed = (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, width)
        return self.out(mixed)


class Net(nn.Module):
    def __init__(self, words=61, width=24, heads=2, layers=2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(nn.ModuleList([Norm(width), Attention(width, heads), Norm(width), nn.Linear(width, width)]) for _ in range(layers))
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        x = self.embed(ids)
        for norm_a, attention, norm_b, dense in self.blocks:
{block}
        return self.head(x)
"""
TRAIN = """import os

with open(os.environ["BISECT_RUNS"], "a") as file:
    file.write("traced\\n" if "OPGUARD_LOG" not in os.environ else "guarded\\n")
import torch
import torch.nn.functional as F

from model import Net
{train_import}
STEPS = 4
{constants}

{definitions}
def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    net = Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=base_rate(0), weight_decay=0.01)
    for step in range(STEPS):
        for group in optimizer.param_groups:
            group["lr"] = base_rate(step)
        for part in range(2):
            ids, targets = batch_of(2 * step + part)
{loss}
            loss.backward()
{clip}
        optimizer.step()
        optimizer.zero_grad()
{report}

main()
"""
RATE = "def base_rate(step):\n{rate}\n"
BATCH = "def batch_of(number):\n{batch}\n"

# Of each piece the texts that are the same to the bit, and one that is wrong.
PIECES = {
    "eps": (["1e-6", "0.000001"], "1e-5"),
    "norm": (["        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)\n        return x * scale * self.weight",
              "        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight",
              "        square = x.pow(2)\n        mean = square.mean(-1, keepdim=True)\n        return x * torch.rsqrt(mean + self.eps) * self.weight"],
             "        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True).bfloat16().float() + self.eps)\n        return x * scale * self.weight"),
    "scores": (["        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5\n"
                "        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float('-inf'))",
                "        hidden = torch.ones(length, length, dtype=torch.bool).triu(1)\n        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5\n"
                "        scores = scores.masked_fill(hidden, float('-inf'))"],
               "        scores = q @ k.transpose(-2, -1) * width ** -0.5\n"
               "        scores = scores.masked_fill(torch.ones(length, length, dtype=torch.bool).triu(1), float('-inf'))"),
    "block": (["            x = x + attention(norm_a(x))\n            x = x + dense(norm_b(x))",
               "            x = self.mix(x, norm_a, attention)\n            x = self.mix(x, norm_b, dense)",
               "            normed = norm_a(x)\n            x = x + attention(normed)\n            normed = norm_b(x)\n            x = x + dense(normed)"],
              "            x = norm_a(x + attention(x))\n            x = x + dense(norm_b(x))"),
    "loss": (["            loss = F.cross_entropy(net(ids).flatten(0, 1), targets.flatten()) / 2",
              "            logits = net(ids).flatten(0, 1)\n            loss = F.cross_entropy(logits, targets.flatten()) / 2",
              "            loss = loss_of(net, ids, targets)"],
             "            loss = F.cross_entropy(net(ids).flatten(0, 1), targets.flatten())"),
    "clip": (["        torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)",
              "        parameters = list(net.parameters())\n        torch.nn.utils.clip_grad_norm_(parameters, 0.5)"],
             "            torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)"),
    "rate": (["    return 0.01 / (1 + step)", "    falling = 1 + step\n    return 0.01 / falling"], "    return 0.01 / max(1, step)"),
    "batch": (["    generator = torch.Generator().manual_seed(number)\n    ids = torch.randint(0, 61, (2, 9), generator=generator)\n    return ids[:, :-1], ids[:, 1:]",
               "    source = torch.Generator()\n    source.manual_seed(number)\n    ids = torch.randint(0, 61, (2, 9), generator=source)\n    return ids[:, :-1], ids[:, 1:]"],
              "    generator = torch.Generator().manual_seed(number // 2)\n    ids = torch.randint(0, 61, (2, 9), generator=generator)\n    return ids[:, :-1], ids[:, 1:]"),
}
FILE_OF = {"eps": "model.py", "norm": "model.py", "scores": "model.py", "block": "model.py"}  # the others: train.py
RENAMES = {"mixed": ["joined"], "width": ["dim", "channels"], "group": ["settings"], "part": ["micro"], "attention": ["attend"], "base_rate": ["learning_rate"],
           "batch_of": ["examples"], "blocks": ["layers_"], "Norm": ["RootMeanSquare"], "ids": ["tokens"], "length": ["positions"]}
LOSS_HELPER = "def loss_of(net, ids, targets):\n    logits = net(ids).flatten(0, 1)\n    return F.cross_entropy(logits, targets.flatten()) / 2\n"
MIX_HELPER = "    def mix(self, x, norm, layer):\n        return x + layer(norm(x))\n"


def render(state):
    """{file: text}"""
    def piece(name):
        if state.get("fault") == name:
            return PIECES[name][1]
        return PIECES[name][0][state.get(name, 0)]
    model = MODEL.format(model_import="\n# Layers.\n" if state.get("layers comment") else "", eps=piece("eps"), norm=piece("norm"),
                         norm_doc='    """Root mean square."""\n' if state.get("norm doc") else "", scores=piece("scores"), block=piece("block"))
    if "self.mix(" in model:
        model += "\n" + MIX_HELPER
    definitions = [RATE.format(rate=piece("rate")), BATCH.format(batch=piece("batch"))]
    if "loss_of(" in piece("loss"):
        definitions.append(LOSS_HELPER)
    if state.get("definitions turned"):
        definitions.reverse()
    report = "        print(f'step {step} loss {loss.item():.4f}')"
    if state.get("print rate"):
        report += "\n        print('rate', base_rate(step))"
    train = TRAIN.format(train_import="import helpers\n" if state.get("helpers") else "", loss=piece("loss"), clip=piece("clip"), report=report,
                         constants="\n".join(f"# {note}" for note in state.get("notes", ())), definitions="\n\n".join(definitions))
    files = {"model.py": model, "train.py": train}
    if state.get("helpers"):
        files["helpers.py"] = "NAMES = ['a', 'b']\n"
    for old, number in sorted(state.get("renames", {}).items()):
        for file in files:
            files[file] = re.sub(rf"\b{old}\b", RENAMES[old][number], files[file])
    if state.get("broken"):
        files["train.py"] = files["train.py"].replace("from model import Net", "from model import Net, Missing")
    files["README.md"] = "A small program.\n" + "".join(f"{line}\n" for line in state.get("readme", ()))
    for name in state.get("docs", ()):
        files[f"docs/{name}.md"] = f"About {name}.\n"
    return files


def refactoring(state, rng):
    """(title, changes) of one that can be done now."""
    choices = []
    for name, (texts, _) in PIECES.items():
        if state.get("fault") == name:
            continue
        choices += [(f"Write {name} another way", {name: i}) for i in range(len(texts)) if i != state.get(name, 0)]
    renames = state.get("renames", {})
    for old, news in RENAMES.items():
        if old not in renames:
            choices += [(f"Rename {old} to {new}", {"renames": {**renames, old: i}}) for i, new in enumerate(news)]
    choices.append(("Turn definitions round", {"definitions turned": not state.get("definitions turned")}))
    return rng.choice(choices)


def other_change(state, rng, number):
    return rng.choice([
        lambda: (f"Explain step {number}", {"notes": (*state.get("notes", ()), f"Note {number}.")}),
        lambda: (f"Say more in README ({number})", {"readme": (*state.get("readme", ()), f"Line {number}.")}),
        lambda: (f"Document part {number}", {"docs": (*state.get("docs", ()), f"part{number}")}),
        lambda: ("Print the rate" if not state.get("print rate") else "Print less", {"print rate": not state.get("print rate")}),
        lambda: ("Document the norm" if not state.get("norm doc") else "Drop a docstring", {"norm doc": not state.get("norm doc")}),
        lambda: ("Add helpers" if not state.get("helpers") else "Drop helpers", {"helpers": not state.get("helpers")}),
    ])()


def history(seed, commits=64, refactorings=20, merges=False, broken=0):
    """(commits, number of the faulty one): each (title, parents as numbers, state); number 0 is the good one, `commits` more follow."""
    rng = random.Random(seed)
    fault_at = rng.randrange(1, commits + 1)
    fault = rng.choice(sorted(PIECES))
    kinds = ["refactor"] * refactorings + ["other"] * (commits - refactorings - 1)
    rng.shuffle(kinds)
    kinds.insert(fault_at - 1, "fault")
    hole = rng.randrange(1, commits - broken) if broken else -1
    made = [("Begin", [], {})]
    branch = None  # (its tip, the main line's tip where it left, commits it will have)
    culprit = None
    for number, kind in enumerate(kinds, 1):
        tip = len(made) - 1
        state = dict(made[tip][2])
        parents = [tip]
        if merges and branch is None and kind == "other" and number % 9 == 0 and number + 3 < commits:
            branch = {"base": tip, "own": {"side": number}}
        if merges and branch and kind == "other" and tip - branch["base"] >= 3:
            # The side branch changed a document alone.
            base_state = dict(made[branch["base"]][2])
            name = f"side{branch['base']}"
            side_state = {**base_state, "docs": (*base_state.get("docs", ()), name)}
            made.append((f"Work on {name}", [branch["base"]], side_state))
            made.append((f"Merge {name}", [tip, len(made) - 1], {**state, "docs": (*state.get("docs", ()), name)}))
            branch = None
            if culprit is None and kind == "fault":
                raise AssertionError
            continue
        if kind == "fault":
            title, change = "Tidy up", {"fault": fault}
            culprit = len(made)
        elif kind == "refactor":
            title, change = refactoring(state, rng)
        else:
            title, change = other_change(state, rng, number)
        state.update(change)
        state["broken"] = hole <= number < hole + broken
        made.append((title, parents, state))
    return made, culprit, fault


def fast_import(made):
    """The history as a stream for `git fast-import`, branch main."""
    out = []
    for number, (title, parents, state) in enumerate(made):
        out.append(f"commit refs/heads/main\nmark :{number + 1}\ncommitter you <you@example.org> {1767268800 + 60 * number} +0000\n".encode())
        out.append(f"data {len(title)}\n{title}\n".encode())
        for i, parent in enumerate(parents):
            out.append(f"{'merge' if i else 'from'} :{parent + 1}\n".encode())
        out.append(b"deleteall\n")
        for name, text in render(state).items():
            body = text.encode()
            out.append(f"M 100644 inline {name}\ndata {len(body)}\n".encode() + body + b"\n")
    return b"".join(out)
