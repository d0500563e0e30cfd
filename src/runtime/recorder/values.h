// runtime/recorder/values.h: arguments and results -> records of their tensors and text of the
// rest.
//
//   f(x, [y, 3], flag=True)        slots      arg0 = x, arg1[0] = y
//                                  scalars    "arg1=[T, 3], flag=True"
//
// Nothing of the program's is called: no repr of its classes, no property, no iterator.
// Counterexample: an object whose items are computed when asked for is not asked. That would run
// the program's code at a moment which it did not choose.
//
// The cost: a walk over the containers with bounds (depth, items, `limit` tensors). Tensors beyond
// them count as lost. The vectors are the thread's, used again for each event.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/recorder/recorder.h"

namespace opguard {

// Modules within modules that are searched for parameters and buffers.
constexpr int kMaxModuleDepth = 16;

// Bytes of a value: of less than this, reading costs no more than finding out that it is not
// needed.
constexpr uint64_t kWorthCarrying = 4096;

// Nothing of the program's is called: no repr of its classes, no property, no iterator. Use under
// OwnWork.
class Collector {
 public:
  // limit: tensors kept; Slot::index has 16 bits.
  Collector(const TorchApi* torch, SlotKind kind, size_t limit = 4096,
            Reading reading = Reading::usual);
  Collector(const TorchApi* torch, SlotKind kind, ThreadState& thread, size_t limit = 4096,
            Reading reading = Reading::usual);
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  ~Collector();

  void use(const TorchApi* torch) { torch_ = torch; }  // where it was made before our own work

  // Shows it each tensor before the record is made; may be nullptr.
  void show(Watch* watch) { watch_ = watch; }

  // Whole models and checkpoints: every tensor a record can number.
  void widen();

  // A tensor becomes a record called `name`; a container is searched ("arg1[3]", "out0.logits");
  // anything else is text ("arg2=3").
  void add(std::string_view name, PyObject* value, SlotFlags flags = 0);
  // Only its tensors are of interest; a value without any leaves no text.
  void add_tensors(std::string_view name, PyObject* value, SlotFlags flags = 0);
  // Parameters and buffers of a module, "param:0.weight".
  void add_module(PyObject* module, SlotFlags flags);
  void text(std::string_view name, std::string_view value);

  struct Item {
    Ref object;  // tensor or numpy array
    std::string name;
    Fingerprint value;  // or, where it is still to come, a ticket (record/late_values.h)
    uint32_t version = 0;
    bool numpy = false;
    bool pending = false;
    bool outside_autograd = false;  // known to have neither a node nor a gradient to come
  };
  const std::vector<Item>& items() const { return items_; }
  std::vector<Slot>& slots() { return slots_; }
  void read(Reading reading) { reading_ = reading; }  // from now on
  const std::string& scalars() const { return scalars_; }
  uint64_t beyond() const { return beyond_; }  // tensors there was no room for

 private:
  bool add_tiny(std::string_view name, PyObject* value, SlotFlags flags);
  bool add_leaf(std::string_view name, PyObject* value, SlotFlags flags);
  void describe(std::string& out, const std::string& name, PyObject* value, SlotFlags flags,
                int depth);
  void describe_dict(std::string& out, const std::string& name, PyObject* dict, SlotFlags flags,
                     int depth);
  bool too_deep(PyObject* value, int depth);
  bool may_enter(PyObject* value, int depth);
  struct Inside {
    Inside(Collector& in, PyObject* container) : in(in) { in.inside_.push_back(container); }
    ~Inside() { in.inside_.pop_back(); }
    Collector& in;
  };
  void walk_module(PyObject* module, const std::string& prefix, SlotFlags flags, int depth);

  const TorchApi* torch_;
  ThreadState& thread_;
  CollectorMemory* const memory_;  // has the vectors; goes back to the thread
  SlotKind kind_;
  Watch* watch_ = nullptr;
  Reading reading_;
  std::vector<Slot>& slots_;
  std::vector<Item>& items_;
  std::string& scalars_;
  size_t limit_;
  std::vector<PyObject*> inside_;  // containers being described, from the outermost
  uint64_t beyond_ = 0, visited_ = 0;
};

// Is its forward torch's own, so that it reads its parameters where no probe is?
bool is_torch_module(const TorchApi& torch, PyObject* object);

}  // namespace opguard
