#include "runtime/watch/watch.h"

#include <dirent.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "runtime/fingerprint/fingerprint.h"
#include "runtime/recorder/recorder.h"
#include "runtime/recorder/storage.h"
#include "runtime/watch/transplant.h"
#include "tensor/selection.h"

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

struct Captured {
  Selection selection;
  uint64_t events = 0;
};

struct Drilled {
  Selection selection;
  bool done = false;
};

struct Planned {
  Transplant transplant;
  TransplantValue value;
  bool loaded = false, done = false;
  bool same = false;    // done: the tensor held that value already
  std::string held;     // og1 of what it held, where it could be read
  std::string refused;  // why
};

// Selections by the boundary they name: an event meets only its own.
using ByBoundary = std::map<std::string, std::vector<size_t>, std::less<>>;

// All under the GIL, as the recorder is. Never destroyed: hooks may fire at the interpreter's end.
struct Watching {
  std::string dir;
  int32_t rank = 0;
  std::optional<uint32_t> process;  // which of this rank's, in the order they began; none: a child
  std::vector<Captured> captures;
  std::vector<Planned> transplants;
  std::vector<Drilled> drills;
  ByBoundary captures_at, transplants_at;
  std::vector<size_t> captures_anywhere;  // whose boundary cannot be told from their slot
  PyObject* driller = nullptr;
  uint64_t files = 0, tensors = 0, failed = 0;
  std::string failure;  // the first one
};

Watching& watching() {
  static auto* instance = new Watching;
  return *instance;
}

void tell(const std::string& what) {
  PySys_WriteStderr("opguard: %.700s\n", what.c_str());
  PyErr_Clear();
}

void fail_capture(const std::string& why) {
  Watching& w = watching();
  if (w.failed++ > 0) return;
  w.failure = why;
  tell("warning: not captured: " + why + "; the run goes on, what is missing is counted");
}

void refuse(Planned& planned, const std::string& why) {
  if (!planned.refused.empty()) return;
  planned.refused = why;
  tell("warning: no transplant of " + transplant_text(planned.transplant) + ": " + why);
}

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

template <typename F>
void each_line(std::string_view text, F f) {
  while (!text.empty()) {
    const size_t end = text.find('\n');
    if (end != 0) f(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
}

// How many processes of this rank have written a log here before.
uint32_t logs_of(const std::string& dir, int32_t rank) {
  const std::string start = "rank" + std::to_string(rank) + "-";
  uint32_t count = 0;
  DIR* folder = opendir(dir.c_str());
  if (folder == nullptr) return 0;
  while (const dirent* entry = readdir(folder)) {
    const std::string_view name = entry->d_name;
    count += name.starts_with(start) && name.find(".log") != name.npos;
  }
  closedir(folder);
  return count;
}

}  // namespace

bool g_watching = false;

void start_watching(std::string_view captures, std::string_view transplants, const std::string& dir,
                    int32_t rank) {
  Watching& w = watching();
  w.dir = dir;
  w.rank = rank;
  w.process = logs_of(dir, rank);
  std::string error;
  each_line(captures, [&](std::string_view line) {
    Captured captured;
    if (parse_selection(line, captured.selection, error))
      w.captures.push_back(std::move(captured));
    else
      fail_capture(error);
  });
  each_line(transplants, [&](std::string_view line) {
    Planned& planned = w.transplants.emplace_back();
    planned.transplant.selection.text = line;
    if (!parse_transplant(line, planned.transplant, error)) return refuse(planned, error);
    // Another rank's is never met here, and its file may be large.
    if (planned.transplant.selection.rank.value_or(rank) != rank) return;
    if (std::string why = load_value(planned.transplant, planned.value); !why.empty())
      return refuse(planned, why);
    planned.loaded = true;
    w.transplants_at[planned.transplant.selection.boundary].push_back(w.transplants.size() - 1);
  });
  for (size_t i = 0; i < w.captures.size(); ++i) {
    const Selection& s = w.captures[i].selection;
    if (s.slot_in_boundary)
      w.captures_anywhere.push_back(i);
    else
      w.captures_at[s.boundary].push_back(i);
  }
  g_watching = !w.captures.empty() || !w.transplants.empty();
}

void start_drilling(std::string_view selections, PyObject* driller) {
  Watching& w = watching();
  std::string error;
  each_line(selections, [&](std::string_view line) {
    Drilled drilled;
    if (parse_selection(line, drilled.selection, error) && drilled.selection.occurrence)
      w.drills.push_back(std::move(drilled));
    else
      tell("warning: nothing is drilled: " + error);
  });
  Py_INCREF(driller);
  w.driller = driller;
  g_watching = g_watching || !w.drills.empty();
}

bool drills_node(std::string_view boundary, std::string_view node) {
  for (const Drilled& drilled : watching().drills) {
    const Selection& s = drilled.selection;
    if (s.boundary == boundary && (s.kind.empty() || s.kind == "node") &&
        (s.node.empty() || s.node == node))
      return true;
  }
  return false;
}

void watch_after_fork() {
  Watching& w = watching();
  for (Captured& captured : w.captures) captured.events = 0;
  for (Planned& planned : w.transplants) {
    planned.done = false;
    if (planned.loaded) planned.refused.clear();
  }
  for (Drilled& drilled : w.drills) drilled.done = false;
  w.process.reset();
  w.files = w.tensors = w.failed = 0;
  w.failure.clear();
}

std::map<std::string, std::string> watch_settings() {
  std::map<std::string, std::string> settings;
  Watching& w = watching();
  if (!w.captures.empty()) {
    std::string text =
        std::to_string(w.tensors) + " tensors in " + std::to_string(w.files) + " files";
    if (w.failed > 0) text += ", " + std::to_string(w.failed) + " failed: " + w.failure;
    settings["capture"] = text;
    for (size_t i = 0; i < w.captures.size(); ++i)
      settings["capture." + std::to_string(i)] = std::to_string(w.captures[i].events);
  }
  for (size_t i = 0; i < w.drills.size(); ++i)
    settings["drill." + std::to_string(i)] = w.drills[i].done ? "done" : "not reached";
  size_t done = 0;
  for (size_t i = 0; i < w.transplants.size(); ++i) {
    const Planned& planned = w.transplants[i];
    done += planned.done;
    settings["transplant." + std::to_string(i)] = planned.done              ? "done"
                                                  : planned.refused.empty() ? "not reached"
                                                                            : planned.refused;
    if (planned.done)
      settings["transplant." + std::to_string(i) + ".was"] = planned.same ? "same" : "other";
    if (planned.done && !planned.held.empty())
      settings["transplant." + std::to_string(i) + ".held"] = planned.held;
  }
  if (!w.transplants.empty())
    settings["transplant"] =
        "done " + std::to_string(done) + " of " + std::to_string(w.transplants.size());
  return settings;
}

std::shared_ptr<Watch> make_watch(const Event& event, std::string_view boundary,
                                  std::string_view node, bool compiled) {
  auto watch = std::make_shared<Watch>(event, boundary, node, compiled);
  return watch->wanted() ? watch : nullptr;
}

Watch::Watch(const Event& event, std::string_view boundary, std::string_view node, bool compiled)
    : event_(event), boundary_(boundary), node_(node), compiled_(compiled) {
  const Watching& w = watching();
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
    const Planned& planned = w.transplants[i];
    const Selection& s = planned.transplant.selection;
    if (planned.loaded && !planned.done && *s.occurrence >= next && s.means(probe, slot))
      transplants_.push_back({i, slot});
  });
}

void Watch::begin() {
  // A site inside itself ends inside first: the outer one's number is a later one.
  constexpr uint32_t kDepth = 16;
  const uint32_t next = recorder().next_occurrence(event_);
  bool due = false;
  for (const Wanted& wanted : drills_)
    due |= *watching().drills[wanted.index].selection.occurrence - next <= kDepth;
  if (!due || open_) return;
  SavedError saved;
  window_ = Ref(PyObject_CallMethod(watching().driller, "begin", nullptr));
  if (!window_) recorder().fault("no window for ATen operators");
  open_ = static_cast<bool>(window_);
}

void Watch::end() {
  if (!open_) return;
  open_ = false;
  SavedError saved;
  Ref ended(PyObject_CallMethod(watching().driller, "end", "O", window_.get()));
  if (!ended) recorder().fault("a window for ATen operators stays open");
}

bool Watch::due(size_t transplant) const {
  const Planned& planned = watching().transplants[transplant];
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
    Planned& planned = watching().transplants[wanted.index];
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
bool Watch::replaces(const std::string& name, PyObject* object) const {
  const TorchApi* torch = torch_api();
  for (const Wanted& wanted : transplants_)
    if (slot_meant(wanted.slot, "out", name) && due(wanted.index) &&
        !(torch != nullptr && torch->is_tensor(object) &&
          holds_value(*torch, object, watching().transplants[wanted.index].value)))
      return true;
  return false;
}

Ref Watch::apart(PyObject* gradients) {
  Ref out = Ref::borrow(gradients);
  if (transplants_.empty() || !PyTuple_Check(gradients)) return out;
  for (Py_ssize_t i = 0, n = PyTuple_Size(gradients); i < n; ++i) {
    PyObject* gradient = PyTuple_GetItem(gradients, i);
    if (gradient == Py_None || !replaces("out" + std::to_string(i), gradient)) continue;
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

Ref Watch::own_result(const OwnWork& work, PyObject* result,
                      const std::function<bool(PyObject*)>& shares) {
  Ref out = Ref::borrow(result);
  if (transplants_.empty() || compiled_ || work.torch() == nullptr) return out;
  auto copy_of = [&](PyObject* value, const std::string& name) {
    if (!work.torch()->is_tensor(value) || !work.torch()->plain(value) || !shares(value) ||
        !replaces(name, value))
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

void Watch::drilled(const Event& event) {
  for (const Wanted& wanted : drills_) {
    Drilled& drilled = watching().drills[wanted.index];
    if (!window_ || drilled.done || *drilled.selection.occurrence != event.occurrence) continue;
    Ref kept(PyObject_CallMethod(watching().driller, "keep", "OsIsssI", window_.get(),
                                 boundary_.c_str(), event.occurrence, kind_name(event.kind),
                                 phase_name(event.phase), node_.c_str(), event.step));
    drilled.done = static_cast<bool>(kept);
    if (!kept) recorder().fault("ATen operators could not be written");
  }
}

void Watch::committed(const Event& event) {
  drilled(event);
  if (captures_.empty()) return;
  Watching& w = watching();
  std::vector<Wanted> now;
  for (const Wanted& wanted : captures_) {
    Captured& captured = w.captures[wanted.index];
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
