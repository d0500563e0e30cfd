// Which values of the reference to put before which operators of the candidate.
//
//   an operator reads a tensor that is not the reference's    the reference's is put in
//   a tensor that is explained                                stays; rounding is no fault
//   an autograd node reads such a gradient                    what the reference's node reads is
//
// What the operator before left is asked for, not what the reader reads: an operator of the
// candidate alone reads known values too. Of a gradient it is the other way round. Autograd adds up
// what several nodes leave, and nobody records that sum but who reads it.
//
// Counterexample: a view of a parameter. What is put there would stay.
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "align/tolerance/expected_placement.h"
#include "align/tolerance/flow_back.h"
#include "align/tolerance/forward_readers.h"
#include "align/tolerance/judged_values.h"
#include "confirm/experiment.h"
#include "confirm/isolation.h"

namespace opguard {
namespace {

// Operators between a part of a sum and what adds it up: a copy, a view, another type.
constexpr int kMostCopies = 4;

uint64_t elements_of(const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (const int64_t d : shape) count *= static_cast<uint64_t>(d);
  return count;
}

class IsolationPlanner {
 public:
  IsolationPlanner(const Run& a, const Run& b, const Comparison& comparison)
      : a_(a),
        b_(b),
        comparison_(comparison),
        flow_(b, comparison),
        readers_(b),
        expected_(a, b, comparison) {
    for (uint32_t i = 0; i < comparison.tensors.size(); ++i)
      for (const SlotRef& at : comparison.tensors[i].b)
        results_[id_of(at.event.process, at.event.event)].push_back(i);
    flow_.learn_from(a);
    for (size_t p = 0; p < b.processes.size(); ++p) note_parameters(static_cast<int32_t>(p));
  }

  IsolationPlan plan() {
    const JudgedValues judged(a_, comparison_);
    const std::vector<uint32_t> sinks = judged.sinks();
    if (sinks.empty()) return {};
    flow_.all_origins(sinks, plan_.on_way);
    std::set<uint32_t> wanted;
    for (const uint32_t number : plan_.on_way) {
      const ComparedTensor& tensor = comparison_.tensors[number];
      if (tensor.a.activity.kind != EventKind::state)
        plan_.last_step = std::max(plan_.last_step, tensor.a.activity.step);
      if (is_forward(tensor) || is_gradient(tensor)) wanted.insert(number);
    }
    for (const ReadTensor& read : flow_.reads_of(wanted)) add(read);
    return std::move(plan_);
  }

 private:
  static uint64_t id_of(int32_t process, uint64_t number) {
    return uint64_t(static_cast<uint32_t>(process)) << 40 | number;
  }

  // Neither of a recomputation nor of an autograd node.
  bool is_forward(const ComparedTensor& tensor) const {
    return (tensor.a.activity.kind == EventKind::op ||
            tensor.a.activity.kind == EventKind::collective) &&
           tensor.a.activity.phase == Phase::forward &&
           comparison_.texts.text(tensor.a.node).empty();
  }

  bool is_gradient(const ComparedTensor& tensor) const {
    return !comparison_.texts.text(tensor.a.node).empty();
  }

  // Of the reference: what the node reads that left what the candidate's node leaves. None: there
  // is no such node, or it is another operator's.
  std::optional<SlotRef> read_in_reference(const SlotRef& at) const {
    const auto made = results_.find(id_of(at.event.process, at.event.event));
    if (made == results_.end()) return std::nullopt;
    const ProcessLog& log = b_.processes[static_cast<size_t>(at.event.process)];
    const Event event = log.events[at.event.event];
    const std::string& name = log.text(log.slots[at.slot].name);
    for (const uint32_t result : made->second) {
      const EventRef& other = comparison_.tensors[result].a.at.event;
      const ProcessLog& of = a_.processes[static_cast<size_t>(other.process)];
      if (of.text(of.events[other.event].node) != log.text(event.node)) continue;
      const EventSlots slots = of.slots_of(of.events[other.event]);
      for (const Slot& slot : slots)
        if (slot.kind == SlotKind::in && has_value(slot) && of.text(slot.name) == name)
          return SlotRef{other, slots.index_of(slot)};
    }
    return std::nullopt;
  }

  // Parts of a sum that an operator reads are added up behind it, at once or by what reads its
  // copies. Or its result was found to be parts, there or in another layer.
  bool adds_up(const EventRef& reader) {
    const auto made = results_.find(id_of(reader.process, reader.event));
    if (made != results_.end())
      for (const uint32_t result : made->second)
        if (const auto expected = expected_.of(result);
            expected && expected->kind == PlacementKind::partial)
          return true;
    return leads_to_collective(reader, kMostCopies);
  }

  // Along operators that read one value and leave as many elements, at most so many.
  bool leads_to_collective(const EventRef& ref, int most) const {
    const ProcessLog& log = b_.processes[static_cast<size_t>(ref.process)];
    const Event event = log.events[ref.event];
    if (communicates(event)) return true;
    if (most == 0) return false;
    std::set<ValueKey> read, left;
    uint64_t elements = 0;
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      if (!has_value(slot) || slot.meta == kNone) continue;
      (slot.kind == SlotKind::in ? read : left).insert(value_key(log, slot));
      if (slot.kind == SlotKind::in) elements = elements_of(log.metas[slot.meta].shape);
    }
    if (read.size() != 1) return false;
    for (const Slot& slot : slots) {
      if (slot.kind == SlotKind::in || !has_value(slot) || slot.meta == kNone ||
          elements_of(log.metas[slot.meta].shape) != elements)
        continue;
      for (const uint32_t next : readers_.of(ref.process, value_key(log, slot)))
        if (next > ref.event && leads_to_collective({ref.process, next}, most - 1)) return true;
    }
    return false;
  }

  // The memory that parameters and buffers of modules lie in.
  void note_parameters(int32_t process) {
    const ProcessLog& log = b_.processes[static_cast<size_t>(process)];
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots)
        if (slot.storage != 0 &&
            ((event.kind == EventKind::state && (slot.flags & kModelValue) != 0) ||
             (slot.flags & kParameter) != 0))
          parameters_.insert(id_of(process, slot.storage));
    }
  }

  // None: it can be put in, and is in plan_.puts.
  void add(const ReadTensor& read) {
    if (const auto why = refusal(read)) ++plan_.not_put[static_cast<size_t>(*why)];
  }

  std::optional<NotPut> refusal(const ReadTensor& read) {
    const ComparedTensor& tensor = comparison_.tensors[read.tensor];
    const ProcessLog& log = b_.processes[static_cast<size_t>(read.at.event.process)];
    const Slot slot = log.slots[read.at.slot];
    if (parameters_.contains(id_of(read.at.event.process, slot.storage)))
      return NotPut::shares_memory;
    const auto expected = expected_.of(read.tensor);
    const auto rank = std::find(tensor.ranks.begin(), tensor.ranks.end(), log.rank);
    if (!expected || rank == tensor.ranks.end()) return NotPut::no_placement;
    const auto at = static_cast<size_t>(rank - tensor.ranks.begin());
    if (at >= expected->held.size()) return NotPut::no_placement;
    const bool gradient = is_gradient(tensor);
    const bool parts = expected->kind == PlacementKind::partial, adds = adds_up(read.at.event);
    SlotRef value = tensor.a.at;
    if (gradient) {
      // What leads from a gradient to a collective is not looked for.
      if (parts || (expected->source == PlacementSource::shape && tensor.ranks.size() > 1 &&
                    expected->set == SketchSetKind::whole))
        return NotPut::may_be_parts;
      const auto same = read_in_reference(read.at);
      if (!same && read.added_up) return NotPut::added_up;
      if (same) value = *same;
    }
    if (expected->source == PlacementSource::shape && adds) return NotPut::may_be_parts;
    if (tensor.state == TensorState::partial && adds) return std::nullopt;  // it is as it should be
    TensorCut cut{expected->set, expected->dim, expected->local, expected->held[at]};
    // Whole on one rank, and zeros elsewhere: the sum is right. What adds nothing up should have
    // read the sum.
    if (parts && adds)
      for (size_t i = 0; i < at; ++i) cut.zeros |= expected->held[i] == expected->held[at];
    if (parts && !adds) plan_.read_as_sums.insert(read.tensor);
    if (slot.meta == kNone || elements_of(log.metas[slot.meta].shape) != elements_of(cut.local))
      return NotPut::other_elements;
    if (selection_of(b_, read.at.event, tensor_name(log, slot)).empty()) return NotPut::unnamed;
    bytes_ += slot.size_bytes;
    if (plan_.puts.size() >= kMostPuts || bytes_ > kMostIsolated) return NotPut::too_much;
    plan_.puts.push_back({read.tensor, value, read.at, std::move(cut)});
    return std::nullopt;
  }

  const Run& a_;
  const Run& b_;
  const Comparison& comparison_;
  FlowBack flow_;
  ForwardReaders readers_;
  ExpectedPlacements expected_;
  std::unordered_map<uint64_t, std::vector<uint32_t>> results_;  // tensors, by b's event
  std::unordered_set<uint64_t> parameters_;                      // blocks of memory, by process
  uint64_t bytes_ = 0;
  IsolationPlan plan_;
};

}  // namespace

IsolationPlan plan_isolation(const Run& a, const Run& b, const Comparison& comparison) {
  return IsolationPlanner(a, b, comparison).plan();
}

}  // namespace opguard
