// operators/operators.h: what an operator of torch is known to do, by its name alone.
//
// Facts only, those of operators.txt: moves_bytes("torch.cat") is true, and of "x.add" it is false.
// Who asks decides what follows: mode `trusted` records no mover, the recorder flags what
// torch.empty leaves, the judge looks behind a draw. A callee is a name as a program writes it, of
// which the last part counts: "torch.cat" and "self.cat" are one to the table. "[]" is getitem. An ATen name,
// "aten::cat.out", goes through aten_name() first. The cost: a binary search in some 400 names.
#pragma once

#include <string_view>

namespace opguard {

// What it leaves are elements of its tensors, moved or shown: cat, transpose. Not add.
bool moves_bytes(std::string_view callee);

// What it leaves holds whatever was in memory: empty. Not zeros.
bool leaves_garbage(std::string_view callee);

// It does, or does where its tensor grew: resize_.
bool may_leave_garbage(std::string_view callee);

// What it leaves is room that others fill: empty, zeros, resize_. Not arange.
bool makes_room(std::string_view callee);

// It takes random numbers: dropout, random.shuffle, `sample_actions` (drawing_words.h). Not
// grid_sample.
bool draws_random(std::string_view callee);

// It does, or does where an argument asks for it: scaled_dot_product_attention.
bool may_draw(std::string_view callee);

// It sets a generator's state: torch.manual_seed, random.setstate. Not dropout.
bool seeds_random(std::string_view callee);

// It writes all of the tensor in the slot, whatever was there: "self" of x.copy_(y), "arg0" of
// nn.init.ones_(w), "arg0[3]" of torch._foreach_copy_(xs, ys). Not "self" of x.add_(y).
bool overwrites(std::string_view callee, std::string_view slot);

// Its kernels write running statistics that it is given, and count no version: batch_norm.
bool updates_statistics(std::string_view callee);

// The same of any name: `self.batch_norm1` and `FrozenBatchNorm2d` may.
bool may_update_statistics(std::string_view callee);

// As a method of nn.Module it replaces its parameters' data: half.
bool converts_module(std::string_view callee);

// Replaces the data of the parameters that it is given: vector_to_parameters. Not clip_grad_norm_.
bool replaces_parameters(std::string_view callee);

// Makes a list of the iterator of parameters that it is given: get_total_norm.
bool lists_parameters(std::string_view callee);

// The same, and changes their gradients: clip_grad_norm_.
bool clips_gradients(std::string_view callee);

// Neither reads nor writes an element, and leaves no tensor: size. Not detach.
bool touches_no_element(std::string_view callee);

// Of its last tensor it reads the shape, the type or the device, and no element: view_as,
// zeros_like.
bool reads_form_alone(std::string_view callee);

// Leaves an array of the very values: numpy. Not item.
bool hands_array(std::string_view callee);

// The operator of Python below which ATen runs it: "matmul" of mm, "add" of add_; "" of gelu.
std::string_view python_operator(std::string_view callee);

// "add_" of "aten::add_.Tensor" and of "aten.add_.Tensor"; other names stay.
std::string_view aten_name(std::string_view activity);

}  // namespace opguard
