"""Programs out of model libraries: one training step of a small model of every family, and a package's own tests.

  families.py PACKAGE... --tree TREE     writes TREE/programs/NAME.py, prints how many

transformers: every model type that AutoModelForCausalLM, ...MaskedLM or ...ImageClassification builds, its configuration made small.
timm, torchvision: of every module with models the one whose name says smallest. TREE holds the packages' sources, so that they are probed.
Tests: what an sdist or a checkout of the package has in tests/, in TREE/tests: one program a file, run by pytest."""

import argparse
import re
from pathlib import Path

# Sizes that transformers' configurations have in common: a model of some thousand parameters, two layers.
SMALL = dict(
    hidden_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, intermediate_size=64, vocab_size=99, head_dim=8, max_position_embeddings=64,
    n_embd=32, n_layer=2, n_head=4, n_inner=64, n_positions=64, d_model=32, d_ff=64, num_layers=2, num_heads=4, d_kv=8, d_inner=64, dim=32, n_heads=4, n_layers=2, hidden_dim=64,
    ffn_dim=64, embedding_size=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, word_embed_proj_dim=32,
    num_experts=4, num_local_experts=4, num_experts_per_tok=2, moe_intermediate_size=32, n_routed_experts=4, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
    image_size=32, patch_size=8, vocab_size_per_layer_input=99, hidden_size_per_layer_input=8, state_size=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip

STEP = """model = prepared(model)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)  # no state: a large model costs its parameters and gradients
for step in range(2):
    optimizer.zero_grad()
    loss = loss_of(model)
    loss.backward()
    print(digest([p.grad for p in model.parameters() if p.grad is not None]))
    optimizer.step()
    print(step, loss.item())
print(digest(model.state_dict()))
"""

TRANSFORMERS = """import torch
from transformers import AutoConfig, {auto}
from driver import digest, ends_if_large, prepared

small = {small!r}


def smaller(known):
    # The sizes that a configuration knows, and those of the configurations in it.
    inner = {{k: smaller(v) for k, v in known.items() if k.endswith("_config") and isinstance(v, dict)}}
    return {{**{{k: v for k, v in small.items() if k in known}}, **inner}}


make = lambda: {auto}.from_config(AutoConfig.for_model({name!r}, **smaller(AutoConfig.for_model({name!r}).to_dict())))
ends_if_large(make)
model = make()
model.train()
words = torch.randint(3, 99, (2, 12))
image = torch.randn(2, 3, 32, 32)


def loss_of(model):
    return {loss}


"""

IMAGES = """import torch
import {package}
from driver import digest, ends_if_large, prepared

make = lambda: {make}
ends_if_large(make)
model = make()
model.train()
image = torch.randn(2, 3, {size}, {size})
label = torch.tensor([1, 3])


def loss_of(model):
    found = model(image)
    found = found if isinstance(found, torch.Tensor) else found[0]
    return torch.nn.functional.cross_entropy(found, label)


"""

TESTS = """import random

import pytest


class Drawn:
    # Of a file's tests so many, in their order.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items):
        count = {count}
        if count and len(items) > count:
            items[:] = [items[i] for i in sorted(random.Random({seed}).sample(range(len(items)), count))]


print(pytest.main(["-q", "-rA", "-p", "no:cacheprovider", "-p", "no:warnings", {file!r}, *{more!r}], plugins=[Drawn()]))
"""

HEADS = {"AutoModelForCausalLM": ("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", "model(input_ids=words, labels=words).loss"),
         "AutoModelForMaskedLM": ("MODEL_FOR_MASKED_LM_MAPPING_NAMES", "model(input_ids=words, labels=words).loss"),
         "AutoModelForImageClassification": ("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", "model(pixel_values=image, labels=torch.tensor([0, 1])).loss")}  # fmt: skip
SMALLEST = ("test_", "atto", "femto", "pico", "nano", "xxt", "_s0", "xxs", "tiny", "_ti", "xs", "050", "_s", "small", "18", "b0", "x0_5", "0_5", "11")


def transformers_programs():
    from transformers.models.auto import modeling_auto

    done = set()
    for auto, (table, loss) in HEADS.items():
        for name in getattr(modeling_auto, table):
            if name not in done:
                done.add(name)
                yield "transformers_" + name, TRANSFORMERS.format(auto=auto, name=name, small=SMALL, loss=loss) + STEP


def smallest(names):
    """By what names of sizes say; then the shortest."""
    rank = {n: next((i for i, word in enumerate(SMALLEST) if word in n), len(SMALLEST)) for n in names}
    return min(names, key=lambda n: (rank[n], len(n), n))


def timm_programs():
    import timm

    for module in timm.list_modules():
        names = timm.list_models(module=module)
        if names:
            make = "timm.create_model(%r, num_classes=10)" % smallest(names)
            size = timm.get_pretrained_cfg(smallest(names), allow_unregistered=True)
            size = size.input_size[-1] if size else 224
            yield "timm_" + module, IMAGES.format(package="timm", make=make, size=min(size, 224)) + STEP


def torchvision_programs():
    import torchvision

    families = {}
    for name in torchvision.models.list_models(torchvision.models):
        families.setdefault(re.match(r"[a-z]+", name).group(), []).append(name)
    for family, names in families.items():
        size = 299 if family == "inception" else 224 if family in ("vit", "maxvit") else 64
        yield "torchvision_" + family, IMAGES.format(package="torchvision", make="torchvision.models.%s(num_classes=10)" % smallest(names), size=size) + STEP


def test_programs(tree, count, seed):
    for file in sorted((tree / "tests").glob("test_*.py")):
        # Of the tests of all models those of the smallest ones; the whole takes hours.
        more = ["-k", "test_vit or test_resnet or test_efficientnet"] if file.name == "test_models.py" else []
        yield "tests_" + file.stem, TESTS.format(file=str(file.relative_to(tree)), more=more, count=count, seed=seed)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("packages", nargs="+", choices=["transformers", "timm", "torchvision"])
    options.add_argument("--tree", type=Path, required=True)
    options.add_argument("--tests", type=int, default=0, help="so many tests of each file, drawn by --seed [0: all]")
    options.add_argument("--seed", type=int, default=0)
    options = options.parse_args()
    folder, count = options.tree / "programs", 0
    folder.mkdir(exist_ok=True)
    (folder / "__init__.py").write_text("")
    makers = {"transformers": transformers_programs, "timm": timm_programs, "torchvision": torchvision_programs}
    for name, text in [p for package in options.packages for p in makers[package]()] + list(test_programs(options.tree, options.tests, options.seed)):
        (folder / ("p_%s.py" % re.sub(r"\W", "_", name))).write_text(text)
        count += 1
    print("%d programs" % count)


if __name__ == "__main__":
    main()
