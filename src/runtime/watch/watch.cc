// One event under --capture, --transplant or --drill, from its beginning to its commit.
//
//   begins     which selections may mean it: boundary, kind, phase, node, rank, step
//   meet()     each tensor as it is read: captured first, as the program made it, then replaced
//   commit     its occurrence is known; captures of another occurrence are dropped
//
// The occurrence is counted as events end. Counterexample: a function that calls itself. The inner
// call ends first and is number 0, so the outer one cannot know its number when it begins. All that
// may still be meant are watched, and the last word is spoken at the end.
//
// After a replacement every view of that memory holds another value at the version it had. So all
// that was remembered of memory is forgotten.
#include "runtime/watch/watch.h"

#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "runtime/fingerprint/fingerprint.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/storage.h"
#include "runtime/watch/watch_list.h"

namespace opguard {
namespace {

const char* kind_name(EventKind kind) {
  static constexpr const char* kNames[] = {"op",        "node",       "accumulate", "loss",
                                           "optimizer", "collective", "state"};
  return kNames[static_cast<size_t>(kind)];
}

const char* phase_name(Phase phase) {
  static constexpr const char* kNames[] = {"forward", "recompute", "backward", "optimizer"};
  return kNames[static_cast<size_t>(phase)];
}

// What was there before it was replaced, as og1: "9f31...:5d02...". It goes into the log's
// settings.
std::string held_text(const TensorView& view) {
  if (!view.readable) return "";
  const Fingerprint value = digest(view.elements, view.meta.dtype, 1).value;
  char text[40];
  std::snprintf(text, sizeof text, "%016" PRIx64 ":%016" PRIx64, value.h, value.m);
  return text;
}

// None where a copy would end a capture of the device's stream, or cannot be had.
Ref host_copy(const TensorView& view, PyObject* object) {
  if (view.device == nullptr || recorder().capturing()) return {};
  Ref plain(PyObject_CallMethod(object, "detach", nullptr));
  if (plain && view.keep) plain = view.keep;
  Ref copy(plain ? PyObject_CallMethod(plain.get(), "cpu", nullptr) : nullptr);
  PyErr_Clear();
  return copy;
}

template <typename F>
void each_at(const ByBoundary& index, std::string_view boundary, F f) {
  if (auto at = index.find(boundary); at != index.end())
    for (size_t i : at->second) f(i);
}

}  // namespace

std::shared_ptr<Watch> make_watch(const Event& event, std::string_view boundary,
                                  std::string_view node, bool compiled) {
  auto watch = std::make_shared<Watch>(event, boundary, node, compiled);
  return watch->wanted() ? watch : nullptr;
}

Watch::Watch(const Event& event, std::string_view boundary, std::string_view node, bool compiled)
    : event_(event), boundary_(boundary), node_(node), compiled_(compiled) {
  const WatchList& w = watch_list();
  const ProbeEvent probe{
      boundary, kind_name(event.kind), phase_name(event.phase), node, w.rank, event.step,
      w.process};
  // Those inside it may end before it does, so that its number can still rise.
  const uint32_t next = recorder().next_occurrence(event_);
  std::string_view slot;
  auto capture = [&](size_t i) {
    const Selection& s = w.captures[i].selection;
    if ((!s.occurrence || *s.occurrence >= next) && s.means(probe, slot))
      captures_.push_back({i, slot});
  };
  each_at(w.captures_at, boundary, capture);
  for (size_t i : w.captures_anywhere) capture(i);
  for (size_t i = 0; i < w.drills.size() && !compiled; ++i) {
    const Selection& s = w.drills[i].selection;
    if (!w.drills[i].done && *s.occurrence >= next && s.means(probe, slot))
      drills_.push_back({i, slot});
  }
  each_at(w.transplants_at, boundary, [&](size_t i) {
    const WantedTransplant& planned = w.transplants[i];
    const Selection& s = planned.transplant.selection;
    if (planned.loaded && !planned.done && *s.occurrence >= next && s.means(probe, slot))
      transplants_.push_back({i, slot});
  });
}

// A window for ATen operators is opened only near the wanted execution: at most 16 before it.
void Watch::begin() {
  // A site inside itself ends inside first: the outer one's number is a later one.
  constexpr uint32_t kDepth = 16;
  const uint32_t next = recorder().next_occurrence(event_);
  bool due = false;
  for (const Wanted& wanted : drills_)
    due |= *watch_list().drills[wanted.index].selection.occurrence - next <= kDepth;
  if (!due || open_) return;
  SavedError saved;
  window_ = Ref(PyObject_CallMethod(watch_list().driller, "begin", nullptr));
  if (!window_) recorder().fault("no window for ATen operators");
  open_ = static_cast<bool>(window_);
}

void Watch::end() {
  if (!open_) return;
  open_ = false;
  SavedError saved;
  Ref ended(PyObject_CallMethod(watch_list().driller, "end", "O", window_.get()));
  if (!ended) recorder().fault("a window for ATen operators stays open");
}

// Is this the wanted execution, as far as is known by now? See above: an inner call may end first.
bool Watch::due(size_t transplant) const {
  const WantedTransplant& planned = watch_list().transplants[transplant];
  return !planned.done &&
         *planned.transplant.selection.occurrence == recorder().next_occurrence(event_);
}

void Watch::meet(const TensorView& view, PyObject* object, SlotKind kind, const std::string& name) {
  const char* of_kind = slot_kind_name(kind);
  // First what the program made of it, then what is put in its place.
  for (const Wanted& wanted : captures_) {
    if (!slot_meant(wanted.slot, of_kind, name)) continue;
    std::string why;
    // A device's tensor is waited for, as the user asked for its bytes.
    TensorView here;
    const Ref copy = view.readable ? Ref() : host_copy(view, object);
    if (copy) view_tensor(*torch_api(), copy.get(), here);
    if (!copies_.add(copy ? here : view, kind, name, why))
      fail_capture(boundary_ + " " + of_kind + "/" + name + ": " + why);
    break;  // once for all of them
  }
  for (const Wanted& wanted : transplants_) {
    if (!slot_meant(wanted.slot, of_kind, name) || !due(wanted.index)) continue;
    WantedTransplant& planned = watch_list().transplants[wanted.index];
    planned.held = held_text(view);
    std::string why = compiled_
                          ? "it is inside a compiled graph, whose kernels may have read it"
                          : replace_value(torch_api(), object, view, planned.value, planned.same);
    if (why.empty()) {
      planned.done = true;
      planned.refused.clear();
      // Every view of that memory holds another value now, at the version it had.
      if (!planned.same) storages().forget_all();
    } else {
      refuse(planned, why);
    }
  }
}

// What holds the value already is left as it is, with the memory it shares.
bool Watch::replaces(std::string_view kind, const std::string& name, PyObject* object) const {
  const TorchApi* torch = torch_api();
  for (const Wanted& wanted : transplants_)
    if (slot_meant(wanted.slot, kind, name) && due(wanted.index) &&
        !(torch != nullptr && torch->is_tensor(object) &&
          holds_value(*torch, object, watch_list().transplants[wanted.index].value)))
      return true;
  return false;
}

// The tuple of gradients with copies in place of those that are to be replaced, or the very tuple.
// Others may hold the original, and keep what they have.
Ref Watch::copied(PyObject* gradients, SlotKind kind) const {
  const std::string stem = kind == SlotKind::in ? "grad" : "out";
  Ref out = Ref::borrow(gradients);
  if (transplants_.empty() || !PyTuple_Check(gradients)) return out;
  for (Py_ssize_t i = 0, n = PyTuple_Size(gradients); i < n; ++i) {
    PyObject* gradient = PyTuple_GetItem(gradients, i);
    if (gradient == Py_None || !replaces(slot_kind_name(kind), stem + std::to_string(i), gradient))
      continue;
    // clone() is differentiable where the program asked for create_graph.
    Ref copy(PyObject_CallMethod(gradient, "clone", nullptr));
    Ref tuple(copy ? PyTuple_New(n) : nullptr);
    if (!tuple) {
      PyErr_Clear();
      continue;
    }
    for (Py_ssize_t k = 0; k < n; ++k)
      PyTuple_SetItem(
          tuple.get(), k,
          k == i ? Ref(copy).release() : Ref::borrow(PyTuple_GetItem(out.get(), k)).release());
    out = tuple;
  }
  return out;
}

Ref Watch::apart(PyObject* gradients) { return copied(gradients, SlotKind::out); }

Ref Watch::read_apart(PyObject* gradients) {
  Ref given = copied(gradients, SlotKind::in);
  if (given.get() == gradients) return given;
  const TorchApi* torch = torch_api();
  for (Py_ssize_t i = 0, n = PyTuple_Size(given.get()); i < n; ++i) {
    PyObject* gradient = PyTuple_GetItem(given.get(), i);
    if (gradient != PyTuple_GetItem(gradients, i))
      meet(view_tensor(*torch, gradient), gradient, SlotKind::in, "grad" + std::to_string(i));
  }
  return given;
}

// Likewise of results: one that lies in others' memory (shares) is copied before it is replaced.
Ref Watch::own_result(const OwnWork& work, PyObject* result,
                      const std::function<bool(PyObject*)>& shares) {
  Ref out = Ref::borrow(result);
  if (transplants_.empty() || compiled_ || work.torch() == nullptr) return out;
  auto copy_of = [&](PyObject* value, const std::string& name) {
    if (!work.torch()->is_tensor(value) || !work.torch()->plain(value) || !shares(value) ||
        !replaces("out", name, value))
      return Ref();
    // Differentiable: the gradient flows on as it did.
    Ref copy(PyObject_CallMethod(value, "clone", nullptr));
    if (!copy) PyErr_Clear();
    return copy;
  };
  if (!PyTuple_CheckExact(result)) {
    Ref copy = copy_of(result, "out0");
    return copy ? copy : out;
  }
  const Py_ssize_t n = PyTuple_Size(result);
  std::vector<Ref> items;
  bool any = false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    items.push_back(copy_of(PyTuple_GetItem(result, i), "out" + std::to_string(i)));
    any |= static_cast<bool>(items.back());
  }
  Ref tuple(any ? PyTuple_New(n) : nullptr);
  if (!tuple) return out;
  for (Py_ssize_t i = 0; i < n; ++i) {
    Ref& item = items[static_cast<size_t>(i)];
    PyTuple_SetItem(tuple.get(), i,
                    item ? item.release() : Ref::borrow(PyTuple_GetItem(result, i)).release());
  }
  return tuple;
}

// Keeps the window's operators if this was the wanted execution.
void Watch::drilled(const Event& event) {
  for (const Wanted& wanted : drills_) {
    WantedDrill& drilled = watch_list().drills[wanted.index];
    if (!window_ || drilled.done || *drilled.selection.occurrence != event.occurrence) continue;
    Ref kept(PyObject_CallMethod(watch_list().driller, "keep", "OsIsssI", window_.get(),
                                 boundary_.c_str(), event.occurrence, kind_name(event.kind),
                                 phase_name(event.phase), node_.c_str(), event.step));
    drilled.done = static_cast<bool>(kept);
    if (!kept) recorder().fault("ATen operators could not be written");
  }
}

// Writes one file with what this execution's selections name of the copies.
void Watch::committed(const Event& event) {
  drilled(event);
  if (captures_.empty()) return;
  WatchList& w = watch_list();
  std::vector<Wanted> now;
  for (const Wanted& wanted : captures_) {
    WantedCapture& captured = w.captures[wanted.index];
    if (captured.selection.occurrence && *captured.selection.occurrence != event.occurrence)
      continue;
    now.push_back(wanted);
    ++captured.events;
  }
  if (now.empty() || copies_.empty()) return;
  const char *kind = kind_name(event.kind), *phase = phase_name(event.phase);
  const TensorMetadata metadata = {
      {"boundary", boundary_},
      {"occurrence", std::to_string(event.occurrence)},
      {"kind", kind},
      {"phase", phase},
      {"node", node_},
      {"rank", std::to_string(w.rank)},
      {"step", std::to_string(event.step)},
      {"micro_batch", std::to_string(event.micro_batch)},
      {"pid", std::to_string(getpid())},
  };
  std::string base = "tensors-rank" + std::to_string(w.rank) + "-" + std::to_string(getpid()) +
                     "-" + file_name(boundary_) + "@" + std::to_string(event.occurrence) + "-" +
                     phase + "-" + kind + (node_.empty() ? "" : "-" + file_name(node_));
  std::string path = w.dir + "/" + base + ".safetensors";
  // Two ids may make one name.
  for (int n = 2; access(path.c_str(), F_OK) == 0; ++n)
    path = w.dir + "/" + base + "~" + std::to_string(n) + ".safetensors";
  std::string error;
  const size_t written = copies_.write(
      path, metadata,
      [&](const std::string& of_kind, const std::string& slot) {
        for (const Wanted& wanted : now)
          if (slot_meant(wanted.slot, of_kind, slot)) return true;
        return false;
      },
      error);
  if (!error.empty()) fail_capture(error);
  w.files += written > 0;
  w.tensors += written;
}

}  // namespace opguard
