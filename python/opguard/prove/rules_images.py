"""Cases of rules.py: convolutions, pools, padding and resizing.

    Case("conv2d of groups", ..., [(1, 4, 3, 3), (4, 2, 2, 2), (4,)])      image, weight, bias

Strides, borders and dilations are chosen so that windows do not come out even. Counterexample: an operator that only a
GPU has is not among them, as everything runs on the processor."""

import torch
import torch.nn.functional as F

from .rules_case import Case

A = torch.ops.aten


def _convolutions():
    yield Case("conv1d", lambda x, y, z: (F.conv1d(x, y, z), F.conv1d(x, y, stride=2, padding=1), F.conv1d(x, y, dilation=2, padding="same")), [(2, 2, 5), (3, 2, 3), (3,)])
    yield Case("conv2d", lambda x, y, z: (F.conv2d(x, y, z, stride=(2, 1), padding=(1, 0)), F.conv2d(x, y, dilation=(1, 2))), [(1, 2, 4, 5), (2, 2, 2, 2), (2,)])
    yield Case("conv2d of groups", lambda x, y, z: F.conv2d(x, y, z, padding=1, groups=2), [(1, 4, 3, 3), (4, 2, 2, 2), (4,)])
    yield Case("conv3d", lambda x, y: F.conv3d(x, y, stride=2, padding=1), [(1, 1, 3, 3, 3), (2, 1, 2, 2, 2)])
    yield Case("transposed", lambda x, y, z: (F.conv_transpose2d(x, y, z), F.conv_transpose2d(x, y, stride=2, padding=1, output_padding=1, dilation=1)), [(1, 2, 3, 3), (2, 2, 2, 2), (2,)])
    yield Case("transposed of groups", lambda x, y: F.conv_transpose1d(x, y, stride=2, groups=2), [(2, 4, 3), (4, 1, 3)])
    yield Case("circular", lambda x: F.pad(x, (1, 2), mode="circular"), [(1, 2, 4)])
    yield Case("unfold, fold", lambda x: (F.unfold(x, 2), F.unfold(x, (2, 1), dilation=2, padding=1, stride=2), F.fold(F.unfold(x, 2) * 2, (3, 4), 2)), [(2, 1, 3, 4)])


def _pools():
    yield Case("averages", lambda x: (F.avg_pool2d(x, 2), F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), F.avg_pool2d(x, 2, 2, 0, ceil_mode=True), F.avg_pool2d(x, (2, 1), divisor_override=3), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True)), [(1, 2, 5, 4)])
    yield Case("averages of 1 and 3", lambda x, y: (F.avg_pool1d(x, 2), F.avg_pool1d(x, 3, 1, 1), F.avg_pool3d(y, 2), F.avg_pool3d(y, 2, 1, 1, count_include_pad=False)), [(1, 2, 5), (1, 1, 2, 3, 2)])
    yield Case("adaptive averages", lambda x, y: (F.adaptive_avg_pool2d(x, (3, 2)), F.adaptive_avg_pool2d(x, 1), F.adaptive_avg_pool3d(y, (2, 2, 1)), F.adaptive_avg_pool1d(x[0], 2)), [(1, 2, 5, 4), (1, 1, 3, 3, 2)])
    yield Case("maxima", lambda x: (F.max_pool2d(x, 2), F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, 2, 1, 0, dilation=2), F.max_pool2d(x, 2, ceil_mode=True)), [(1, 2, 5, 4)])
    yield Case("maxima of 1 and 3", lambda x, y: (F.max_pool1d(x, 2), F.max_pool3d(y, 2, 1)), [(1, 2, 5), (1, 1, 2, 3, 2)])
    yield Case("adaptive maxima", lambda x, y: (F.adaptive_max_pool2d(x, (2, 3)), F.adaptive_max_pool3d(y, (1, 2, 1))), [(1, 1, 5, 4), (1, 1, 2, 3, 2)])


def _resizing():
    yield Case("reflection", lambda x, y, z: (F.pad(x, (1, 2), mode="reflect"), F.pad(y, (1, 0, 2, 1), mode="reflect"), F.pad(z, (1, 0, 0, 1, 1, 1), mode="reflect")), [(1, 2, 4), (1, 1, 3, 3), (1, 1, 2, 2, 2)])
    yield Case("replication", lambda x, y, z: (F.pad(x, (1, 2), mode="replicate"), F.pad(y, (1, 0, 2, 1), mode="replicate"), F.pad(z, (1, 0, 0, 2, 1, 1), mode="replicate")), [(1, 2, 4), (1, 1, 3, 3), (1, 1, 2, 2, 2)])
    yield Case("nearest", lambda x, y, z: (F.interpolate(x, scale_factor=2), F.interpolate(y, size=(5, 2)), F.interpolate(y, scale_factor=1.5), F.interpolate(z, scale_factor=2), F.interpolate(y, size=(5, 7), mode="nearest-exact")), [(1, 2, 3), (1, 1, 3, 4), (1, 1, 2, 2, 2)])
    yield Case("linear", lambda x, y, z: (F.interpolate(x, scale_factor=2, mode="linear"), F.interpolate(y, size=(5, 2), mode="bilinear"), F.interpolate(y, scale_factor=2, mode="bilinear", align_corners=True), F.interpolate(z, scale_factor=2, mode="trilinear")), [(1, 2, 3), (1, 1, 3, 4), (1, 1, 2, 2, 2)])
    yield Case("cubic", lambda x: (F.interpolate(x, scale_factor=2, mode="bicubic"), F.interpolate(x, size=(4, 5), mode="bicubic", align_corners=True)), [(1, 1, 3, 4)])


def cases():
    for family in (_convolutions, _pools, _resizing):
        yield from family()
