"""Operators of a C++ extension: one that works through raw pointers and in place, one made of ATen operators."""
import torch
import torch.nn.functional as F
from loop import train
from torch import nn
from torch.utils.cpp_extension import load_inline

SOURCE = """
// x *= scale, behind the version counter's back.
void scale_in_place(torch::Tensor x, double scale) {
  TORCH_CHECK(x.is_contiguous() && x.scalar_type() == torch::kFloat);
  float* data = static_cast<float*>(x.mutable_data_ptr());
  for (int64_t i = 0; i < x.numel(); ++i) data[i] *= static_cast<float>(scale);
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor weight, double eps) {
  return x * torch::rsqrt(x.pow(2).mean(-1, true) + eps) * weight;
}
"""
native = load_inline("opguard_bench_extension", SOURCE, functions=["scale_in_place", "rms_norm"])


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        out = x.clone()
        native.scale_in_place(out, scale)
        return out

    @staticmethod
    def backward(ctx, grad):
        grad = grad.clone()
        native.scale_in_place(grad, ctx.scale)
        return grad, None


class Layer(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + Scale.apply(self.linear(native.rms_norm(x, self.weight, 1e-6)), 0.5)


torch.manual_seed(10)
model = nn.Sequential(Layer(), Layer(), nn.Linear(16, 4))
batches = [{"x": torch.randn(8, 16), "target": torch.randint(0, 4, (8,))} for _ in range(2)]
train(model, batches, loss_of=lambda model, batch: F.cross_entropy(model(batch["x"]), batch["target"]))
