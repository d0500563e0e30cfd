// runtime/watch/watch.h: what --capture and --transplant want of one event
// (docs/formats/tensors.md).
//
//   --capture attention.softmax:q7k2@3:out0        the fourth execution's result goes to a file
//   --transplant mlp.linear:d2mx@0:out0=h.safetensors      its result becomes what h holds
//
// Counterexample: a result that is a view lies in memory which others hold. It is replaced by a
// copy, so that they keep what they have (own_result).
//
// The cost: where neither was asked for, of this event or at all, there is no Watch; a pointer is
// tested.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "runtime/host/py.h"
#include "runtime/host/tensor_view.h"
#include "runtime/watch/capture.h"

namespace opguard {

class OwnWork;

class Watch {
 public:
  // Use watch_event().
  Watch(const Event& event, std::string_view boundary, std::string_view node, bool compiled);

  // A tensor of the event, before it is recorded; `view` is of `object`. Replaces its value or
  // copies it. Under OwnWork.
  void meet(const TensorView& view, PyObject* object, SlotKind kind, const std::string& name);
  // The gradients an autograd node hands on: the tuple, or one with copies in the places to be
  // replaced. A gradient may share its memory with others.
  Ref apart(PyObject* gradients);
  // Those a node is about to read: as apart(), and those to be replaced are, in their copies.
  Ref read_apart(PyObject* gradients);
  // An operator's result, or a copy where it is to be replaced and lies in memory that is not its
  // own, as `shares` says. A view's other holders keep what they have.
  Ref own_result(const OwnWork& work, PyObject* result,
                 const std::function<bool(PyObject*)>& shares);
  // --drill: the operator begins and has ended, in any way; nothing of ours runs between the two.
  // end() may be called again.
  void begin();
  void end();
  // Of the event, if it is the one meant: what ran in the window is written.
  void drilled(const Event& event);
  // The event has its occurrence: writes the file.
  void committed(const Event& event);

  bool wanted() const { return !captures_.empty() || !transplants_.empty() || !drills_.empty(); }

 private:
  struct Wanted {
    size_t index;           // of the selection
    std::string_view slot;  // "": all
  };
  bool due(size_t transplant) const;
  // Whether a result of that name is to be replaced, by another value than it holds.
  bool replaces(std::string_view kind, const std::string& name, PyObject* object) const;
  Ref copied(PyObject* gradients, SlotKind kind) const;

  Event event_;
  std::string boundary_, node_;
  bool compiled_;
  std::vector<Wanted> captures_, transplants_, drills_;
  Ref window_;         // of drill.py, the operators inside
  bool open_ = false;  // it is recording
  TensorCopies copies_;
};

// From now on: one selection a line in `captures`, one SELECTION=FILE[#NAME] a line in
// `transplants`. dir: where captures are written. What cannot be done is told, and is no error.
void start_watching(std::string_view captures, std::string_view transplants, const std::string& dir,
                    int32_t rank);
// Executions whose ATen operators are recorded: one selection a line; driller: drill.py's.
void start_drilling(std::string_view selections, PyObject* driller);
// Whether something is to be done before some execution of this autograd node: a window, or a
// gradient that it reads to be replaced.
bool watched_before(std::string_view boundary, std::string_view node);
// In a forked child: nothing was done yet, but what its parent did.
void watch_after_fork();
// "transplant" -> "done 1 of 1", "capture" -> "3 tensors in 2 files", and each one's own fate as
// "transplant.0", "capture.0"; nothing where nothing was asked for.
std::map<std::string, std::string> watch_settings();

extern bool g_watching;  // read by watch_event() alone
std::shared_ptr<Watch> make_watch(const Event& event, std::string_view boundary,
                                  std::string_view node, bool compiled);

// None where nothing is wanted of the event. With `compiled`, inside a graph of torch.compile, none
// is replaced: another kernel may hold the value already.
inline std::shared_ptr<Watch> watch_event(const Event& event, std::string_view boundary,
                                          std::string_view node = {}, bool compiled = false) {
  if (!g_watching) [[likely]]
    return nullptr;
  return make_watch(event, boundary, node, compiled);
}

}  // namespace opguard
