// One pass over the events with sketches, in their order. A node is named by its forward event: the
// executions of all events so far are kept for it.
//
//   event 201   model.wq in layers.0, execution 1          executions[201]
//   event 380   MmBackward0 of event 201                   the same activity and execution, node
//                                                          "MmBackward0", again 0
//   event 381   MmBackward0 of event 201, once more        again 1
//
// Texts are numbered through all logs: a log's own number is looked up in a table, and its text is
// hashed once.
#include "align/tolerance/tensors.h"

#include <algorithm>
#include <utility>

namespace opguard {
namespace {

// A node's name and its forward event, as one number.
uint64_t node_of(uint32_t forward, uint32_t node) { return uint64_t{forward} << 32 | node; }

// Parameters behind a step are those of the next, unless it is the last; its state is its own.
bool is_left_out(const Event& event, const std::string& slot) {
  return event.kind == EventKind::accumulate ||
         (event.kind == EventKind::optimizer && !slot.starts_with("param:"));
}

}  // namespace

uint32_t Texts::number(std::string_view text) {
  const auto [it, fresh] =
      numbers_.try_emplace(std::string(text), static_cast<uint32_t>(texts_.size()));
  if (fresh) texts_.push_back(&it->first);
  return it->second;
}

bool has_optimizer(const Run& run) {
  for (const ProcessLog& log : run.processes)
    for (uint64_t i = 0; i < log.events.size(); ++i)
      if (log.events.kind(i) == EventKind::optimizer) return true;
  return false;
}

ProcessTensors tensors_of(const Run& run, int32_t process, Texts& texts, StepsBy steps) {
  ProcessTensors found;
  const ProcessLog& log = run.processes[static_cast<size_t>(process)];
  std::vector<uint32_t> numbers(log.strings.size(), kNone);  // of Texts
  const auto number = [&](uint32_t string) {
    if (string == kNone) return texts.number("");
    uint32_t& known = numbers[string];
    if (known == kNone) known = texts.number(log.strings[string]);
    return known;
  };
  struct Execution {
    Activity activity;
    uint32_t number = 0;
  };
  std::unordered_map<uint32_t, Execution> executions;  // by event
  std::unordered_map<uint64_t, uint32_t> nodes;        // that have run
  uint32_t times = 0;                                  // parameters were recorded
  for (uint64_t i = 0; i < log.sketches.size(); ++i) {
    const auto index = static_cast<uint32_t>(log.sketches.event(i));
    const Event event = log.events[index];
    const EventCode sketches = log.sketches.code_of_event(index);
    times += event.kind == EventKind::state && log.text(event.boundary) == "<parameters>";
    const uint32_t step = steps == StepsBy::optimizer ? event.step : std::max(times, 1u) - 1;
    if (event.kind == EventKind::loss) {
      if (found.losses.size() <= step) found.losses.resize(step + size_t{1});
      ++found.losses[step];
    }
    SketchedTensor tensor;
    tensor.node = number(event.kind == EventKind::node ? event.node : kNone);
    const auto forward =
        event.kind == EventKind::node ? executions.find(event.forward) : executions.end();
    if (forward != executions.end()) {
      tensor.activity = forward->second.activity;
      tensor.execution = forward->second.number;
      tensor.again = nodes[node_of(event.forward, event.node)]++;
    } else {
      tensor.activity = {number(event.boundary), number(sketches.module), event.kind, event.phase,
                         step};
      tensor.execution = found.executions[tensor.activity]++;
      if (event.kind != EventKind::node) executions[index] = {tensor.activity, tensor.execution};
    }
    const EventSlots slots = log.slots_of(event);
    for (const SlotCode& slot : sketches.slots) {
      const uint32_t name = log.slots[event.first_slot + slot.slot].name;
      if (is_left_out(event, log.text(name))) continue;
      tensor.slot = number(name);
      tensor.declared = slot.declared == kNone ? kNone : number(slot.declared);
      tensor.at = {{process, index}, event.first_slot + slot.slot};
      found.tensors.push_back(tensor);
    }
  }
  return found;
}

std::string_view kind_of_slot(std::string_view name) {
  for (const std::string_view kind : {"param:", "grad:"})
    if (name.starts_with(kind)) return name.substr(0, kind.size());
  return {};
}

std::string_view name_in(std::string_view slot) { return slot.substr(kind_of_slot(slot).size()); }

size_t TensorIndex::Hash::operator()(const SketchedTensor* t) const {
  uint64_t h = ActivityHash()(t->activity);
  for (const uint32_t part : {t->execution, t->node, t->again, t->slot})
    h = (h ^ part) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 31);
}

bool TensorIndex::SameName::operator()(const SketchedTensor* a, const SketchedTensor* b) const {
  return a->activity == b->activity && a->execution == b->execution && a->node == b->node &&
         a->again == b->again && a->slot == b->slot;
}

TensorIndex::TensorIndex(const ProcessTensors& tensors) {
  all_.reserve(tensors.tensors.size());
  for (const SketchedTensor& tensor : tensors.tensors) all_.insert(&tensor);
}

const SketchedTensor* TensorIndex::find(const SketchedTensor& name) const {
  const auto found = all_.find(&name);
  return found == all_.end() ? nullptr : *found;
}

// An event's sketches are decoded together, so the last event's are kept for its other slots.
const SlotCode* SketchReader::code_of(const SlotRef& at) {
  const auto process = static_cast<size_t>(at.event.process);
  const ProcessLog& log = run_.processes[process];
  Last& last = last_[process];
  if (last.event != at.event.event) {
    last.event = at.event.event;
    last.code = log.sketches.code_of_event(at.event.event);
  }
  const uint64_t slot = at.slot - log.events[at.event.event].first_slot;
  for (const SlotCode& code : last.code.slots)
    if (code.slot == slot) return &code;
  return nullptr;
}

std::vector<SketchSet> SketchReader::sets(const SlotRef& at,
                                          const std::vector<std::vector<int64_t>>& locals) {
  const SlotCode* code = code_of(at);
  return code == nullptr ? std::vector<SketchSet>() : sets_of(*code, locals);
}

const Sketch* SketchReader::own(const SlotRef& at) {
  if (own_.empty() || !(own_at_ == at)) {
    own_ = sets(at, {});
    own_at_ = at;
  }
  return own_.empty() ? nullptr : &own_[0].sketches[0];
}

std::vector<Sketch> SketchReader::unpadded(const SlotRef& at) {
  std::vector<Sketch> found;
  for (const SketchSet& set : sets(at, {}))
    if (set.kind == SketchSetKind::unpadded && !set.sketches.empty())
      found.push_back(set.sketches[0]);
  return found;
}

const Meta& SketchReader::meta(const SlotRef& at) const {
  static const Meta none;
  const ProcessLog& log = run_.processes[static_cast<size_t>(at.event.process)];
  const uint32_t meta = log.slots[at.slot].meta;
  return meta == kNone ? none : log.metas[meta];
}

}  // namespace opguard
