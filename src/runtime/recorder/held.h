// runtime/recorder/held.h: the tensors behind an argument that is no tensor: a module's, an
// optimizer's.
//
//   clip(model)     arg0.param:layers.0.weight, arg0.grad:layers.0.weight, ...: read before it
//
// Code without probes may change any of them, and nothing else would show it. Counterexample: any
// other object is not searched: its attributes may be properties, which would run the program's
// code.
#pragma once

#include <string>
#include <vector>

#include "runtime/host/py.h"
#include "runtime/host/torch_api.h"

namespace opguard {

struct Held {
  std::string name;  // "param:layers.0.weight", "grad:layers.0.weight"
  Ref tensor;
  SlotFlags flags = 0;
};

// Parameters, buffers and gradients of a module; parameters and gradients of an optimizer, and with
// `state` its state, "state:layers.0.weight.exp_avg"; nothing of any other object. Under OwnWork.
std::vector<Held> held_tensors(const TorchApi& torch, PyObject* object, bool state);

bool is_optimizer(const TorchApi& torch, PyObject* object);

// The parameters of an optimizer's groups, or of an object that keeps a list of them and steps them
// without being an optimizer of torch's. They are numbered where they have no name.
struct Parameter {
  Ref tensor;
  std::string name;  // ":layers.0.weight", "3"
};
std::vector<Parameter> parameters_of(const TorchApi& torch, PyObject* optimizer);

// An attribute of an optimizer; of any other object only what lies in its own dict.
Ref optimizer_field(const TorchApi& torch, PyObject* optimizer, const char* name);

}  // namespace opguard
