// runtime/probe/operation.h: one execution of an operator site, from its inputs to its event.
//
//   og("mul:77ab", h) * rstd
//      Operation op(id)              coordinates are taken, the thread enters the boundary
//      op.input("self", h)           h is read now: the operator may write into it
//      op.input("arg0", rstd)
//      op.ready()                    inputs' nodes are noted: an in-place operator replaces them
//      h * rstd                      the program's own, by the interpreter's own function
//      op.finish(result)             inputs that changed, the result; the event goes to the log
//
// When nothing is recorded every step is a no-op. The GIL is held throughout, except inside the
// program's operator. Counterexample: an operator that raises has no result, but it has an event.
//
// The cost: 0.6 to 0.8 us a probe with two inputs and one output of four floats
// (docs/results/figures.md).
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "runtime/probe/callee.h"
#include "runtime/recorder/values.h"

namespace opguard {

// What a probe says of its operator beyond its name (docs/design/architecture.md).
enum class Mark : uint8_t {
  none,
  writes,       // it changes arguments behind torch's version counters: all are read again
  step,         // a training step ends with it
  micro_batch,  // a micro-batch ends with it
};

// Use: construct, name the inputs, let the program's operator run, finish. When nothing is recorded
// every step is a no-op. The GIL is held throughout, except inside the program's operator.
class Operation {
 public:
  explicit Operation(PyObject* id, Mark mark = Mark::none);
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;
  ~Operation();

  bool active() const { return active_; }
  void input(const char* name, PyObject* value);
  // Of a call, first of all. What the callee would make a list of before anything else is made one
  // here. False: that raised, and the call has failed with the program's error.
  bool arguments(PyObject* callee, Ref& args, Ref& kwargs);
  // Receiver, own parameters, positional and keyword arguments of a call.
  void call_inputs(PyObject* callee, PyObject* args, PyObject* kwargs);
  // Of an operator without a callee: mode `trusted` may not record it.
  void skip_primitive(std::string_view name);
  // After the last input: in-place operators replace an input's history, so it is noted before.
  void ready();

  // result: new reference or nullptr with the program's error set. Both come back untouched.
  PyObject* finish(PyObject* result);
  // The same for operators whose only answer is success: setitem, delitem.
  int finish(int status);
  // An item of an iteration. own_item: the container held it already, so that it is no new value.
  PyObject* finish_item(PyObject* item, bool own_item);
  // Nothing happened: no event.
  void cancel();

 private:
  void jitter(PyObject* result, const OwnWork& work);
  void set_mark();
  bool done();  // leaves the operator; false: there is no log any more to take the event
  bool running_statistic(size_t input);
  void written_inputs(std::vector<Slot>& slots, const OwnWork& work);
  void read_slots(const OwnWork& work, std::vector<Slot>& slots);
  bool overwritten(PyObject* object) const;
  bool in_others_memory(PyObject* result) const;
  void record(PyObject* result, bool raised, const OwnWork& work);
  // "lr=[0.1, 0.01]" of the optimizer that a scheduler is bound to; "" for any other object.
  static std::string learning_rates(const TorchApi& torch, PyObject* scheduler);
  void receiver_inputs(const TorchApi& torch, PyObject* self);
  void hold(const TorchApi& torch, const std::string& prefix, PyObject* holder, bool state);
  void gradient_inputs(const TorchApi& torch, const std::string& name, PyObject* list);
  void listed_gradients(const TorchApi& torch);

  struct Holder {  // an argument that is no tensor and holds some
    std::string prefix;
    Ref object;
    bool state;                            // an optimizer's state too
    std::unordered_set<PyObject*> before;  // its tensors, which inputs_ keeps alive
  };

  ThreadState* const thread_;  // that it runs in
  bool active_ = false;
  Mark mark_ = Mark::none;
  const std::string* boundary_ = nullptr;  // kept by the recorder
  std::optional<OwnWork> work_;  // from the first input to ready(): one piece of our own work
  uint64_t generation_ = 0;      // of the log in which the event's strings are
  Event event_;
  uint64_t serial_ = 0;
  SlotFlags output_flags_ = 0;
  bool collective_ = false;  // a function of torch.distributed
  Ref flight_;               // the collective it launched
  Callee callee_;
  std::vector<Holder> holders_;
  Ref scheduler_;  // the receiver, bound to an optimizer whose learning rates it sets
  Ref stepper_;    // the receiver, an optimizer that is not torch's
  Collector inputs_;
  std::shared_ptr<Watch> watch_;
  std::vector<Ref> history_;  // grad_fn of the inputs before the call
};

}  // namespace opguard
