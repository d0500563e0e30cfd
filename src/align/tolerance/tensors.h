// align/tolerance/tensors.h: the sketched tensors of a log, by names that hold in another layout.
//
//   event 201 of rank 1, step 0     boundary model.wq:mxi7, module layers.0.attention, the 2nd
//                                   execution of it in the step, slot out0
//   node of event 201               the same, node MmBackward0, slot out1
//   <gradients>                     slot grad:layers.0.attention.wq.weight
//
// Nothing in a name depends on how many ranks there are. Which execution of a rank is which of the
// reference, micro_batches.h says; which layer, layers.h.
//
// Counterexample: an event's own occurrence counts over all modules and steps, so it is
// no name. A rank that holds half of the layers counts to half.
//
// The cost: one pass over the events that have sketches; texts are numbered once for all logs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

// Numbers of texts that several logs share.
class Texts {
 public:
  uint32_t number(std::string_view text);
  const std::string& text(uint32_t number) const { return *texts_[number]; }

 private:
  std::unordered_map<std::string, uint32_t> numbers_;
  std::vector<const std::string*> texts_;  // keys of numbers_, which stay where they are
};

// What runs again and again within a step.
struct Activity {
  uint32_t boundary = 0, module = 0;  // of Texts
  EventKind kind = EventKind::op;     // of a node: of its forward event
  Phase phase = Phase::forward;       // likewise
  uint32_t step = 0;
  bool operator==(const Activity&) const = default;
};

struct ActivityHash {
  size_t operator()(const Activity& a) const {
    uint64_t h = uint64_t{a.boundary} << 32 | a.module;
    h = (h ^ (uint64_t{a.step} << 8 | uint64_t(a.kind) << 4 | uint64_t(a.phase))) *
        0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
  }
};

struct SketchedTensor {
  Activity activity;
  uint32_t execution = 0;  // of the activity, in its process
  uint32_t node = 0;       // of Texts, "" for none
  uint32_t again = 0;      // nodes of that name that ran before for the same execution
  uint32_t slot = 0;       // of Texts
  SlotRef at;
  uint32_t declared = kNone;  // of Texts: declaration.h
};

// Those of one process, in the order of its events. What accumulates gradients is left out:
// `<gradients>` has the same, whole. Of an optimizer's step there are the parameters alone.
struct ProcessTensors {
  std::vector<SketchedTensor> tensors;
  std::unordered_map<Activity, uint32_t, ActivityHash> executions;  // how many there are
  std::vector<uint32_t> losses;  // by step: backward passes begun at a recorded root
};

// A step ends with an optimizer's, or where parameters are recorded anew (`<parameters>`). The
// second holds of programs with an optimizer of their own, too.
enum class StepsBy : uint8_t { optimizer, parameters };
bool has_optimizer(const Run& run);
ProcessTensors tensors_of(const Run& run, int32_t process, Texts& texts,
                          StepsBy steps = StepsBy::optimizer);

// "param:" or "grad:", with which a slot's name begins; else "".
std::string_view kind_of_slot(std::string_view slot);
// "layers.0.wq" of "grad:layers.0.wq".
std::string_view name_in(std::string_view slot);

// Tensors of a process by their names. The first of several of one name counts.
class TensorIndex {
 public:
  explicit TensorIndex(const ProcessTensors& tensors);
  // Whose name is that of `name`, wherever that one is; nullptr: none.
  const SketchedTensor* find(const SketchedTensor& name) const;

 private:
  struct Hash {
    size_t operator()(const SketchedTensor* t) const;
  };
  struct SameName {
    bool operator()(const SketchedTensor* a, const SketchedTensor* b) const;
  };
  std::unordered_set<const SketchedTensor*, Hash, SameName> all_;
};

// Where the last event's sketches lie is kept, since its slots are asked for one after the other.
class SketchReader {
 public:
  explicit SketchReader(const Run& run) : run_(run), last_(run.processes.size()) {}

  // Of a tensor that tensors_of() gave: its own, and those of the pieces that ranks with
  // `locals` may hold.
  std::vector<SketchSet> sets(const SlotRef& at, const std::vector<std::vector<int64_t>>& locals);
  // Its own; of a tensor without sketches nullptr. It stays until the next call.
  const Sketch* own(const SlotRef& at);
  // The same of its elements that may be no pad, where it was recorded so.
  std::vector<Sketch> unpadded(const SlotRef& at);
  const Meta& meta(const SlotRef& at) const;

 private:
  struct Last {
    uint32_t event = kNone;
    EventCode code;
  };
  const SlotCode* code_of(const SlotRef& at);

  const Run& run_;
  std::vector<Last> last_;
  SlotRef own_at_;
  std::vector<SketchSet> own_;
};

}  // namespace opguard
