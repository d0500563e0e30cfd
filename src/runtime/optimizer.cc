#include "runtime/optimizer.h"

#include "runtime/object.h"
#include "runtime/operation.h"
#include "runtime/recorder.h"
#include "runtime/values.h"

namespace opguard {
namespace {

constexpr size_t kMaxSlots = 65535;  // a model has many parameters, Slot::index 16 bits

// fn(number, parameter) for every parameter of every group.
template <typename F>
void for_each_parameter(PyObject* groups, F fn) {
  if (groups == nullptr || !PyList_Check(groups)) return;
  size_t number = 0;
  for (Py_ssize_t g = 0; g < PyList_Size(groups); ++g) {
    PyObject* group = PyList_GetItem(groups, g);
    PyObject* params = PyDict_Check(group) ? PyDict_GetItemString(group, "params") : nullptr;
    if (params == nullptr || !PyList_Check(params)) continue;
    for (Py_ssize_t i = 0; i < PyList_Size(params); ++i)
      fn(std::to_string(number++), PyList_GetItem(params, i));
  }
}

void add_state(Collector& to, PyObject* states, const std::string& number, PyObject* param) {
  if (states == nullptr || !PyDict_Check(states)) return;
  PyObject* state = PyDict_GetItemWithError(states, param);  // never a defaultdict's insertion
  if (state == nullptr || !PyDict_Check(state)) {
    PyErr_Clear();
    return;
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(state, &at, &key, &value);)
    to.add_tensors("state" + number + "." + std::string(utf8(key)), value);
}

void add_hyperparameters(Collector& to, PyObject* groups) {
  if (groups == nullptr || !PyList_Check(groups)) return;
  for (Py_ssize_t g = 0; g < PyList_Size(groups); ++g) {
    PyObject* group = PyList_GetItem(groups, g);
    if (!PyDict_Check(group)) continue;
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(group, &at, &key, &value);) {
      std::string_view name = utf8(key);
      if (name != "params" && name != "param_names")
        to.add("group" + std::to_string(g) + "." + std::string(name), value);
    }
  }
}

}  // namespace

void optimizer_begins(PyObject* optimizer) {
  if (!recorder().on() || recorder().thread().inside) return;
  OwnWork work;
  ThreadState& thread = recorder().thread();
  try {
    // The same optimizer twice: its earlier step raised and never ended.
    for (size_t i = 0; i < thread.optimizers.size(); ++i)
      if (thread.optimizers[i].optimizer == optimizer) thread.optimizers.resize(i);
    std::string boundary =
        thread.running.empty() ? "<optimizer.step>" : thread.running.back().boundary;
    if (thread.running.empty()) locate_boundary(boundary, user_frame().get());
    OptimizerStep step;
    step.optimizer = optimizer;
    step.depth = thread.running.size();
    step.event = recorder().open_event(boundary, EventKind::optimizer, Phase::optimizer);
    step.generation = recorder().generation();
    Collector in(work.torch(), SlotKind::in, kMaxSlots);
    Ref groups = attribute(optimizer, "param_groups"), states = attribute(optimizer, "state");
    for_each_parameter(groups.get(), [&](const std::string& number, PyObject* param) {
      in.add_tensors("param" + number, param);
      Ref grad = attribute(param, "grad");
      if (grad && grad.get() != Py_None) in.add_tensors("grad" + number, grad.get(), kModelValue);
      add_state(in, states.get(), number, param);
    });
    add_hyperparameters(in, groups.get());
    if (in.beyond() > 0) recorder().lose(in.beyond());
    if (!in.scalars().empty()) step.event.scalars = recorder().string(in.scalars());
    step.slots = std::move(in.slots());
    thread.optimizers.push_back(std::move(step));
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

void optimizer_ended(PyObject* optimizer) {
  if (!recorder().on() || recorder().thread().inside) return;
  OwnWork work;
  ThreadState& thread = recorder().thread();
  try {
    size_t at = thread.optimizers.size();
    while (at > 0 && thread.optimizers[at - 1].optimizer != optimizer) --at;
    if (at == 0) return;
    OptimizerStep step = std::move(thread.optimizers[at - 1]);
    thread.optimizers.resize(at - 1);
    if (step.generation == recorder().generation()) {
      Collector out(work.torch(), SlotKind::out, kMaxSlots);
      Ref groups = attribute(optimizer, "param_groups"), states = attribute(optimizer, "state");
      for_each_parameter(groups.get(), [&](const std::string& number, PyObject* param) {
        out.add_tensors("param" + number, param, kModelValue);
        add_state(out, states.get(), number, param);
      });
      if (out.beyond() > 0) recorder().lose(out.beyond());
      step.slots.insert(step.slots.end(), out.slots().begin(), out.slots().end());
      recorder().commit(step.event, step.slots);
    }
    // Wrappers that step an inner optimizer count once.
    if (thread.optimizers.empty()) recorder().count_step();
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

}  // namespace opguard
