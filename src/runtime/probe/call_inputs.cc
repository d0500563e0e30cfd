// runtime/probe/call_inputs.cc: what a call reads: its receiver, the tensors behind its arguments.
//
//   conv(x, bias=False, stride=2)       arg0 = x; "bias=False, stride=2": keywords by name
//   linear_layer(x)                     torch's own module: its parameters too, no probe reads them
//   scheduler.step()                    the learning rates, before and after
//   clip_grad_norm_(m.parameters())     the gradients; the iterator is made a list first
//   foreign(model)                      the tensors of what it is given, since it may change them
//
// Counterexample: an iterator of the program's is not read for our sake. Only where the function's
// first act is to make a list of it, the list is made here and handed on.
//
// Gradients of a list are read by the parameter's name, so that a regrouping changes no name.
#include <algorithm>
#include <utility>

#include "runtime/entries/optimizer.h"
#include "runtime/host/object.h"
#include "runtime/probe/numbered.h"
#include "runtime/probe/operation.h"
#include "runtime/recorder/held.h"
#include "runtime/recorder/parameter_names.h"

namespace opguard {
namespace {

// Modules, classes and plain values have names of their own; anything else says its class.
std::string name_of(PyObject* callee) { return utf8_attribute(callee, "__name__"); }

Ref first_of(PyObject* args, PyObject* kwargs, Py_ssize_t place, const char* name) {
  if (PyTuple_Size(args) > place) return Ref::borrow(PyTuple_GetItem(args, place));
  PyObject* found = kwargs != nullptr ? PyDict_GetItemString(kwargs, name) : nullptr;
  return Ref::borrow(found);
}

// torch.Tensor(2, 3), torch.Tensor(torch.Size([2, 3])); not torch.Tensor([2, 3]), which are values.
bool are_sizes(PyObject* args) {
  const Py_ssize_t count = PyTuple_Size(args);
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* value = PyTuple_GetItem(args, i);
    const bool shape = PyTuple_Check(value) && type_name(value) == "Size";
    if (!(PyLong_Check(value) && !PyBool_Check(value)) && !shape) return false;
  }
  return count > 0;
}

// conv(padding=1, bias=False) is conv(bias=False, padding=1).
std::vector<std::pair<std::string_view, PyObject*>> by_name(PyObject* kwargs) {
  std::vector<std::pair<std::string_view, PyObject*>> all;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; kwargs != nullptr && PyDict_Next(kwargs, &at, &key, &value);)
    all.emplace_back(utf8(key), value);
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

// Also changes what the callee is given: an iterator of parameters becomes the list that is read
// here. False: the program's iterator raised, and its exception is set.
bool Operation::arguments(PyObject* callee, Ref& args, Ref& kwargs) {
  if (!active_) return true;
  callee_ = describe_callee(work_->torch(), callee);
  if (callee_.primitive && recorder().mode() == Mode::trusted && mark_ == Mark::none) {
    cancel();
    return true;
  }
  if (!callee_.reads_iterator) return true;
  work_.reset();  // an iterator is the program's code
  // The first thing it does is to make a list; ours is the one it makes. An iterator that is at its
  // end already is handed on, since an empty generator is warned of.
  auto list_of = [](PyObject* value, Ref& list) {
    if (!PyIter_Check(value)) return true;
    list = Ref(PySequence_List(value));
    if (list && PyList_Size(list.get()) == 0) list = Ref();
    return list || !PyErr_Occurred();
  };
  for (Py_ssize_t i = 0, n = PyTuple_Size(args.get()); i < n; ++i) {
    Ref list;
    if (!list_of(PyTuple_GetItem(args.get(), i), list)) return false;
    if (!list) continue;
    Ref changed(PyTuple_New(n));
    if (!changed) return false;
    for (Py_ssize_t k = 0; k < n; ++k)
      PyTuple_SetItem(
          changed.get(), k,
          k == i ? Ref(list).release() : Ref::borrow(PyTuple_GetItem(args.get(), k)).release());
    args = changed;
  }
  PyObject* named = kwargs ? PyDict_GetItemString(kwargs.get(), "parameters") : nullptr;
  if (named == nullptr) return true;
  Ref list;
  if (!list_of(named, list)) return false;
  if (!list) return true;
  kwargs = Ref(PyDict_Copy(kwargs.get()));
  return kwargs && PyDict_SetItemString(kwargs.get(), "parameters", list.get()) == 0;
}

void Operation::call_inputs(PyObject* callee, PyObject* args, PyObject* kwargs) {
  if (!active_) return;
  if (!work_) work_.emplace(*thread_);
  try {
    const TorchApi* torch = work_->torch();
    collective_ = callee_.collective;
    if (callee_.uninitialised || (callee_.takes_sizes && are_sizes(args)))
      output_flags_ |= kUninitialised;
    if (callee_.saves || callee_.loads) inputs_.widen();
    thread_->running.back().communicates = callee_.communicates;
    Ref self = receiver_of(callee);
    if (self) {
      inputs_.add("self", self.get());
      // super().forward(x): the module's parameters are read by torch's own code.
      if (torch && torch->is_module(self.get()) && name_of(callee) == "forward" &&
          in_package(utf8_attribute(callee, "__module__"), "torch"))
        inputs_.add_module(self.get(), 0);
      if (torch) receiver_inputs(*torch, self.get());
    } else if (torch && is_torch_module(*torch, callee)) {
      inputs_.add_module(callee, 0);
    }
    Py_ssize_t given = PyTuple_Size(args);
    Ref clipped = torch && callee_.clips ? first_of(args, kwargs, 0, "parameters") : Ref();
    auto add = [&](std::string_view name, PyObject* value) {
      if (value == clipped.get()) return gradient_inputs(*torch, std::string(name), value);
      inputs_.add(name, value);
      if (torch && callee_.foreign && !torch->plain(value))
        hold(*torch, std::string(name) + ".", value, callee_.loads);
    };
    for (Py_ssize_t i = 0; i < given; ++i)
      add(Numbered("arg", static_cast<size_t>(i)), PyTuple_GetItem(args, i));
    if (kwargs != nullptr)
      for (const auto& [name, value] : by_name(kwargs)) add(name, value);
    // What code of others does to a list of parameters, it may do to their gradients.
    if (torch && callee_.foreign && !callee_.torch) listed_gradients(*torch);
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

// "lr=[0.001]" of a scheduler's optimizer, a number for each group; "" of anything else.
std::string Operation::learning_rates(const TorchApi& torch, PyObject* scheduler) {
  if (torch.is_module(scheduler) || is_optimizer(torch, scheduler)) return "";
  Ref optimizer = optimizer_field(torch, scheduler, "optimizer");
  if (!optimizer || !is_optimizer(torch, optimizer.get())) return "";
  Ref groups = attribute(optimizer.get(), "param_groups");
  if (!groups || !PyList_Check(groups.get())) return "";
  Collector rates(&torch, SlotKind::in);
  Ref list(PyList_New(0));
  for (Py_ssize_t g = 0; list && g < PyList_Size(groups.get()); ++g) {
    PyObject* group = PyList_GetItem(groups.get(), g);
    PyObject* lr = PyDict_Check(group) ? PyDict_GetItemString(group, "lr") : nullptr;
    if (lr != nullptr) PyList_Append(list.get(), lr);
  }
  rates.add("lr", list.get());
  return rates.scalars();
}

void Operation::receiver_inputs(const TorchApi& torch, PyObject* self) {
  if (callee_.steps) {
    if (steps_unhooked(torch, self)) stepper_ = Ref::borrow(self);
    std::string rates = learning_rates(torch, self);
    if (!rates.empty()) {
      inputs_.text("self." + rates.substr(0, 2), rates.substr(3));
      scheduler_ = Ref::borrow(self);
    }
  }
  if (!callee_.foreign || torch.plain(self)) return;
  // An optimizer's step and its tables are recorded or read elsewhere.
  bool loads = callee_.loads;
  if (callee_.into_receiver && (loads || !is_optimizer(torch, self)))
    hold(torch, "self.", self, loads);
  // GradScaler's scale.
  Ref type = Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  if (torch.is_module(self) || torch.is_tensor(self) || is_optimizer(torch, self) ||
      !in_package(utf8_attribute(type.get(), "__module__"), "torch"))
    return;
  Ref fields(PyObject_GenericGetDict(self, nullptr));
  if (!fields) PyErr_Clear();
  if (!fields || !PyDict_Check(fields.get())) return;
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(fields.get(), &at, &key, &value);)
    if (torch.is_tensor(value)) inputs_.add_tensors("self." + std::string(utf8(key)), value);
}

// Modules and optimizers as arguments: their tensors, read before the call as the call may.
void Operation::hold(const TorchApi& torch, const std::string& prefix, PyObject* holder,
                     bool state) {
  std::vector<Held> all = held_tensors(torch, holder, state);
  if (all.empty()) return;
  inputs_.widen();
  holders_.push_back({prefix, Ref::borrow(holder), state, {}});
  for (const Held& held : all) {
    inputs_.add_tensors(prefix + held.name, held.tensor.get(), held.flags);
    holders_.back().before.insert(held.tensor.get());
  }
}

// A list of parameters given to a function that works on their gradients alone.
void Operation::gradient_inputs(const TorchApi& torch, const std::string& name, PyObject* list) {
  std::vector<Ref> params;
  if (torch.is_tensor(list)) params.push_back(Ref::borrow(list));
  bool tuple = PyTuple_Check(list);
  Py_ssize_t n = tuple ? PyTuple_Size(list) : PyList_Check(list) ? PyList_Size(list) : 0;
  for (Py_ssize_t i = 0; i < n; ++i)
    params.push_back(Ref::borrow(tuple ? PyTuple_GetItem(list, i) : PyList_GetItem(list, i)));
  if (params.empty()) return inputs_.add(name, list);
  inputs_.widen();
  inputs_.text(name, "<" + std::to_string(params.size()) + " parameters>");
  std::vector<std::string> names = parameter_names(params);
  for (size_t i = 0; i < params.size(); ++i) {
    // Of another tensor than a leaf torch would warn.
    Ref leaf = attribute(params[i].get(), "is_leaf");
    Ref grad = leaf.get() == Py_True ? attribute(params[i].get(), "grad") : Ref();
    if (grad && grad.get() != Py_None)
      inputs_.add_tensors("grad" + (names[i].empty() ? std::to_string(i) : ":" + names[i]),
                          grad.get());
  }
}

// Of parameters within a list or a field ("arg0[3]"). One that is an argument by itself is read
// alone.
void Operation::listed_gradients(const TorchApi& torch) {
  std::vector<std::pair<std::string, Ref>> grads;
  for (const Collector::Item& item : inputs_.items()) {
    if (!has_type(item.object.get(), torch.parameter_type)) continue;
    if (item.name.find_first_of(".[") == std::string::npos || item.name.find(':') != item.name.npos)
      continue;
    Ref grad = attribute(item.object.get(), "grad");
    if (grad && grad.get() != Py_None) grads.push_back({item.name + ".grad", grad});
  }
  for (const auto& [name, grad] : grads) inputs_.add_tensors(name, grad.get());
}

}  // namespace opguard
