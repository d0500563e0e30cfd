// A step is what is between two hooks, and there is one of it, however many objects are called
// `step`.
//
//   opt.step()                                 torch's hooks: one event, one step counted
//   wrapper.step() that calls opt.step()       the inner one's event; the wrapper is superseded
//   step() that moves no parameter             no event: it was another kind of step
//   step() that raised                         dropped by the next one of the same optimizer
//
// Names are those of the parameters, where they have one. Counterexample: their place in the list.
// A regrouping would then change every name.
//
// State is looked up as it lies: a defaultdict would make an entry when it is asked. After the step
// all parameters are read anew, since fused kernels need not count versions.
#include "runtime/entries/optimizer.h"

#include <algorithm>
#include <unordered_map>

#include "runtime/host/object.h"
#include "runtime/recorder/held.h"
#include "runtime/recorder/location.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/values.h"
#include "runtime/watch/watch.h"

namespace opguard {
namespace {

constexpr size_t kMaxSlots = 65535;  // a model has many parameters, Slot::index 16 bits

void add_state(Collector& to, PyObject* states, const Parameter& param) {
  if (states == nullptr || !PyDict_Check(states)) return;
  PyObject* state =
      PyDict_GetItemWithError(states, param.tensor.get());  // never a defaultdict's insertion
  if (state == nullptr || !PyDict_Check(state)) {
    PyErr_Clear();
    return;
  }
  PyObject *key, *value;
  for (Py_ssize_t at = 0; PyDict_Next(state, &at, &key, &value);)
    to.add_tensors("state" + param.name + "." + std::string(utf8(key)), value);
}

// "group0.lr=0.001, group0.betas=(0.9, 0.999)", all but the parameters themselves.
void add_hyperparameters(Collector& to, PyObject* groups) {
  if (groups == nullptr || !PyList_Check(groups)) return;
  for (Py_ssize_t g = 0; g < PyList_Size(groups); ++g) {
    PyObject* group = PyList_GetItem(groups, g);
    if (!PyDict_Check(group)) continue;
    PyObject *key, *value;
    // Which parameters a group's settings are for: how many tells most regroupings apart.
    if (PyObject* params = PyDict_GetItemString(group, "params");
        PyList_Size(groups) > 1 && params != nullptr && PyList_Check(params)) {
      Ref count(PyLong_FromSsize_t(PyList_Size(params)));
      to.add("group" + std::to_string(g) + ".params", count.get());
    }
    for (Py_ssize_t at = 0; PyDict_Next(group, &at, &key, &value);) {
      std::string_view name = utf8(key);
      if (name != "params" && name != "param_names")
        to.add("group" + std::to_string(g) + "." + std::string(name), value);
    }
  }
}

// By name: one that is new, or has another value, has moved.
bool parameters_moved(const std::vector<Slot>& before, const std::vector<Slot>& after) {
  std::unordered_map<uint32_t, Fingerprint> values;
  for (const Slot& slot : before) values.try_emplace(slot.name, slot.value);
  return std::any_of(after.begin(), after.end(), [&](const Slot& slot) {
    auto was = values.find(slot.name);
    // On a device the answer comes later than it is wanted: a step of its optimizer is one.
    return was == values.end() || was->second != slot.value || (slot.flags & kPending);
  });
}

}  // namespace

void optimizer_begins(PyObject* optimizer) {
  if (!recorder().alive() || recorder().thread().inside) return;
  OwnWork work;
  if (work.torch() == nullptr) return;
  ThreadState& thread = recorder().thread();
  try {
    // The same optimizer twice: its earlier step raised and never ended.
    for (size_t i = 0; i < thread.optimizers.size(); ++i)
      if (thread.optimizers[i].optimizer == optimizer) thread.optimizers.resize(i);
    if (!recorder().on()) {
      // Only counted: of no log, so that its end records nothing.
      OptimizerStep counted;
      counted.optimizer = optimizer;
      counted.depth = thread.running.size();
      thread.optimizers.push_back(std::move(counted));
      return;
    }
    std::string boundary =
        thread.running.empty() ? "<optimizer.step>" : *thread.running.back().boundary;
    if (thread.running.empty()) locate_boundary(boundary, user_frame().get());
    OptimizerStep step;
    step.optimizer = optimizer;
    step.depth = thread.running.size();
    step.of_torch = is_optimizer(*work.torch(), optimizer);
    // A wrapper of another kind: what it holds is this optimizer's.
    for (OptimizerStep& outer : thread.optimizers) outer.superseded |= !outer.of_torch;
    step.event = recorder().open_event(boundary, EventKind::optimizer, Phase::optimizer);
    step.generation = recorder().generation();
    step.watch = watch_event(step.event, boundary);
    Collector in(work.torch(), SlotKind::in, kMaxSlots);
    in.show(step.watch.get());
    Ref groups = optimizer_field(*work.torch(), optimizer, "param_groups");
    Ref states = optimizer_field(*work.torch(), optimizer, "state");
    if (recorder().mode() != Mode::sdc)
      for (const Parameter& param : parameters_of(*work.torch(), optimizer)) {
        in.add_tensors("param" + param.name, param.tensor.get());
        Ref grad = attribute(param.tensor.get(), "grad");
        if (grad && grad.get() != Py_None)
          in.add_tensors("grad" + param.name, grad.get(), kModelValue);
        add_state(in, states.get(), param);
      }
    add_hyperparameters(in, groups.get());
    if (in.beyond() > 0) recorder().lose(in.beyond());
    if (!in.scalars().empty()) step.event.scalars = recorder().string(in.scalars());
    step.slots = std::move(in.slots());
    thread.optimizers.push_back(std::move(step));
    if (thread.optimizers.back().watch) thread.optimizers.back().watch->begin();
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

void optimizer_ended(PyObject* optimizer) {
  if (!recorder().alive() || recorder().thread().inside) return;
  OwnWork work;
  ThreadState& thread = recorder().thread();
  try {
    size_t at = thread.optimizers.size();
    while (at > 0 && thread.optimizers[at - 1].optimizer != optimizer) --at;
    if (at == 0) return;
    for (size_t i = thread.optimizers.size(); i-- > at - 1;)
      if (thread.optimizers[i].watch) thread.optimizers[i].watch->end();
    OptimizerStep step = std::move(thread.optimizers[at - 1]);
    thread.optimizers.resize(at - 1);
    if (step.generation == recorder().generation()) {
      // Fused and compiled optimizers need not count versions.
      Collector out(work.torch(), SlotKind::out, kMaxSlots, Reading::forced);
      out.show(step.watch.get());
      Ref states = optimizer_field(*work.torch(), optimizer, "state");
      for (const Parameter& param : parameters_of(*work.torch(), optimizer)) {
        storages().forget(param.tensor.get());
        out.add_tensors("param" + param.name, param.tensor.get(), kModelValue);
        if (recorder().mode() != Mode::sdc) add_state(out, states.get(), param);
      }
      if (out.beyond() > 0) recorder().lose(out.beyond());
      // Called `step`, but no parameter moved.
      if (!step.of_torch && !step.superseded && !parameters_moved(step.slots, out.slots())) return;
      step.slots.insert(step.slots.end(), out.slots().begin(), out.slots().end());
      if (!step.superseded) recorder().commit(step.event, step.slots);
      if (!step.superseded && step.watch) step.watch->committed(step.event);
    }
    // Wrappers that step an inner optimizer count once.
    if (thread.optimizers.empty()) recorder().count_step();
  } catch (const std::exception& e) {
    recorder().fault(e.what());
  }
}

// Something with a method `step` and parameters that is no torch.optim.Optimizer. No hook of
// torch's tells of its steps, so the probe of the call does.
bool steps_unhooked(const TorchApi& torch, PyObject* object) {
  if (torch.is_module(object) || is_optimizer(torch, object)) return false;
  return !parameters_of(torch, object).empty();
}

void optimizer_dropped(PyObject* optimizer) {
  if (!recorder().alive()) return;
  std::vector<OptimizerStep>& steps = recorder().thread().optimizers;
  if (steps.empty() || steps.back().optimizer != optimizer) return;
  if (steps.back().watch) steps.back().watch->end();
  steps.pop_back();
}

void closure_begins() {
  if (!recorder().alive() || recorder().thread().inside) return;
  ThreadState& thread = recorder().thread();
  if (!thread.optimizers.empty()) ++thread.optimizers.back().closures;
}

void closure_ended() {
  if (!recorder().alive() || recorder().thread().inside) return;
  ThreadState& thread = recorder().thread();
  if (!thread.optimizers.empty() && thread.optimizers.back().closures > 0)
    --thread.optimizers.back().closures;
}

}  // namespace opguard
