"""A small EfficientNet of a few blocks."""
import argparse, os, sys
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "_common"))
import oracle
import torch

from efficientnet_pytorch import EfficientNet
from efficientnet_pytorch.utils import BlockDecoder, GlobalParams

p = argparse.ArgumentParser(); p.add_argument("--dump"); p.add_argument("--size", type=int, default=24); p.add_argument("--plain", type=int, default=0)
o = p.parse_args()
# Releases differ in what they ask for.
sizes = dict(width_coefficient=1.0, depth_coefficient=1.0, image_size=o.size, dropout_rate=0.2, num_classes=5, batch_norm_momentum=0.9,
             batch_norm_epsilon=1e-3, drop_connect_rate=0.2, depth_divisor=8, min_depth=None, include_top=True)
blocks = BlockDecoder.decode(["r1_k3_s11_e1_i32_o16_se0.25", "r1_k5_s22_e2_i16_o16_se0.25", "r2_k3_s22_e2_i16_o24_se0.25", "r1_k3_s22_e2_i24_o32_se0.25"])
oracle.setup(0)
net = EfficientNet(blocks, GlobalParams(**{name: sizes[name] for name in GlobalParams._fields}))
net.set_swish(memory_efficient=not o.plain)
oracle.reinit(net, std=0.1)
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
images, labels = torch.randn(4, 3, o.size, o.size), torch.randint(0, 5, (4,))
with oracle.record(o.dump):
    for step in range(3):
        loss = torch.nn.functional.cross_entropy(net(images), labels)
        loss.backward(); opt.step(); opt.zero_grad()
        print("step", step, "loss", repr(loss.item()), flush=True)
