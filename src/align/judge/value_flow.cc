// The walk back: from a value that only one run holds to the operators that began it.
//
//   a   h = norm(x)    y = h * 2    loss = y.sum()
//   b   h = norm(x)    y = h * 3    loss = y.sum()
//
// The losses differ. Behind `sum` stands y, which differs as well; behind `*` stands h, which both
// runs hold. So `*` is the origin: all that it read is known, and what it left is not.
//
// Who made a value? The memory is asked first: which event wrote these bytes last. Where memory
// does not tell, the value's name is: the first event that made such a value. Below Python nothing
// is recorded. There the walk goes by what must have happened: autograd adds up (push_summed), a
// reducer averages (push_reduced), a collective reads the other ranks (push_peers).
//
// Counterexample: an operator that reads one differing value is no origin, however strange its
// result. A known value may be the end all the same, if the other run reads another one in its
// place (chosen).
//
// The cost: an event is expanded once a walk, whatever the number of values that lead to it. A sum
// below Python looks back over the events of its step.
#include "align/judge/value_flow.h"

#include <algorithm>
#include <utility>

namespace opguard {
namespace {

// Of events between the begin and the end of `outer`, those of its own thread ran inside it.
bool inside(const Event& outer, const Event& inner) { return inner.thread == outer.thread; }

}  // namespace

bool Flow::push_novel_inputs(const EventRef& ref, const EventRef& consumer, bool inputs_only,
                             std::vector<Work>& stack) const {
  bool any = false;
  const EventSlots slots = mine_.log(ref).slots_of(mine_.event(ref));
  for (const Slot& slot : slots) {
    if (inputs_only && slot.kind != SlotKind::in) continue;
    const SlotRef at{ref, slots.index_of(slot)};
    if (!differs(at)) continue;
    if (known_.written_over(at)) continue;
    stack.push_back({at, consumer});
    any = true;
  }
  return any;
}

// Novel results of events inside this one: the last of them is nearest to its own result.
bool Flow::push_children(const EventRef& ref, std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(ref);
  const Event& event = mine_.event(ref);
  for (uint64_t e = ref.event; e-- > event.begin;) {
    const Event& child = log.events[e];
    if (!inside(event, child) || child.kind == EventKind::loss) continue;
    const EventSlots slots = log.slots_of(child);
    for (const Slot& slot : slots) {
      const SlotRef at{{ref.process, uint32_t(e)}, slots.index_of(slot)};
      if (slot.kind == SlotKind::in || !differs(at)) continue;
      stack.push_back({at, ref});
      return true;
    }
  }
  return false;
}

// A backward node also reads what its forward kept; after a recomputation, what that made.
bool Flow::push_forward(const EventRef& ref, std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(ref);
  const Event& node = mine_.event(ref);
  if (node.kind != EventKind::node || node.forward == kNone) return false;
  EventRef forward{ref.process, node.forward};
  // Another operator in the other run: its inner values are its own, and the loss agreed all the
  // same.
  if (one_sided(forward)) return false;
  if (push_novel_inputs(forward, forward, false, stack)) return true;
  for (uint32_t e = ref.event; e-- > node.forward;) {
    const Event& event = log.events[e];
    if (event.kind == EventKind::op && event.phase == Phase::recompute &&
        event.boundary == node.boundary)
      return push_novel_inputs({ref.process, e}, {ref.process, e}, false, stack);
    if (event.kind == EventKind::node && event.forward == node.forward && event.step != node.step)
      break;
  }
  return false;
}

// A collective reads the inputs of every rank that takes part: those whose inputs are novel.
std::vector<EventRef> Flow::push_peers(const EventRef& ref, std::vector<Work>& stack) const {
  std::vector<EventRef> novel;
  if (!(mine_.event(ref).flags & kCollective)) return novel;
  for (const EventRef& peer : mine_.collectives().peers(ref))
    if (push_novel_inputs(peer, peer, true, stack)) novel.push_back(peer);
  return novel;
}

// Where a value has several readers, autograd adds up what they send back, below Python. The sum
// comes from the outgoing gradients of those readers' nodes.
bool Flow::push_summed(const Work& work, std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(work.wanted.event);
  const Event& event = mine_.event(work.wanted.event);
  if (event.kind != EventKind::node && event.kind != EventKind::accumulate) return false;
  const Slot& wanted = mine_.slot(work.wanted);
  std::unordered_set<ValueKey, ValueKeyHash> results;  // of the forward this node belongs to
  if (event.forward != kNone) {
    const Event& forward = log.events[event.forward];
    for (const Slot& slot : log.slots_of(forward))
      if (slot.kind != SlotKind::in) results.insert(value_key(log, slot));
  }
  auto reads_result = [&](const Event& node) {
    if (node.forward == kNone) return false;
    const Event& forward = log.events[node.forward];
    for (const Slot& slot : log.slots_of(forward))
      if (slot.kind == SlotKind::in && results.contains(value_key(log, slot))) return true;
    return false;
  };
  // Without a reader of that result, whatever this backward pass sent on in that shape.
  for (bool readers_only : {true, false}) {
    bool any = false;
    for (uint32_t e = work.wanted.event.event; e-- > 0;) {
      const Event& node = log.events[e];
      if (node.step != event.step || node.kind == EventKind::loss) break;
      if (node.kind != EventKind::node || (readers_only && !reads_result(node))) continue;
      EventRef ref{work.wanted.event.process, e};
      const EventSlots slots = log.slots_of(node);
      for (const Slot& slot : slots) {
        const SlotRef at{ref, slots.index_of(slot)};
        if (slot.kind == SlotKind::in || slot.meta != wanted.meta || !differs(at)) continue;
        stack.push_back({at, ref});
        any = true;
      }
    }
    if (any) return true;
  }
  return false;
}

// Gradients that a data-parallel reducer averaged below Python: they come from the gradients every
// rank accumulated in that step.
bool Flow::push_reduced(const Work& work, std::vector<Work>& stack) {
  const Event& consumer = mine_.event(work.consumer);
  const Slot& wanted = mine_.slot(work.wanted);
  if (mine_.run().processes.size() < 2 || consumer.kind != EventKind::optimizer) return false;
  const Meta& meta = mine_.log(work.consumer).metas[wanted.meta];
  bool own = false;
  std::vector<EventRef> peers;
  for (size_t p = 0; p < mine_.run().processes.size(); ++p) {
    const ProcessLog& log = mine_.run().processes[p];
    for (size_t e = 0; e < log.events.size(); ++e) {
      const Event& event = log.events[e];
      if (event.kind != EventKind::accumulate || event.step != consumer.step) continue;
      EventRef ref{int32_t(p), uint32_t(e)};
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots) {
        const SlotRef at{ref, slots.index_of(slot)};
        if (slot.kind == SlotKind::in || !(log.metas[slot.meta] == meta) || !differs(at)) continue;
        stack.push_back({at, ref});
        if (ref.process == work.consumer.process)
          own = true;
        else if (peers.empty() || peers.back().process != ref.process)
          peers.push_back(ref);
      }
    }
  }
  const bool any = own || !peers.empty();
  if (any && !own) arrivals_.push_back({work.consumer, work.wanted.slot, std::move(peers)});
  return any;
}

// An operator that leaves a value which somebody made before it, and read it nowhere, had it from
// there all the same. So does `sum(b.aux for b in blocks)` of one block. No edge is known, so the
// name serves.
SlotRef Flow::read_unseen(const SlotRef& made) const {
  const Event& event = mine_.event(made.event);
  if (!on(Heuristic::read_unseen) || event.kind != EventKind::op || event.begin == 0) return {};
  const EventRef before{made.event.process, uint32_t(event.begin)};
  const SlotRef earlier =
      mine_.producer(value_key(mine_.log(made.event), mine_.slot(made)), before, false);
  return earlier.event.process == before.process && differs(earlier) ? earlier : SlotRef{};
}

// `made` is a value some event made that differs: go on to what that event read, or stop there.
void Flow::expand(const SlotRef& made, const EventRef& reader, std::vector<Work>& stack,
                  std::vector<Origin>& origins) {
  const EventRef& ref = made.event;
  if (!visited_.insert(id(ref)).second) return;
  if (one_sided(ref)) steps_.push_back({ref, reader});
  const size_t before = stack.size();
  follow(made, reader, stack, origins);
  // What only this run has belongs to whoever waits for it.
  for (size_t i = before; i < stack.size(); ++i)
    if (stack[i].reader.process < 0) stack[i].reader = one_sided(ref) ? reader : ref;
}

void Flow::follow(const SlotRef& made, const EventRef& reader, std::vector<Work>& stack,
                  std::vector<Origin>& origins) {
  const EventRef& ref = made.event;
  const EventRef& next = one_sided(ref) ? reader : ref;
  if (known_.views_larger_input(made) && trace_parts({made, ref, next}, stack, origins)) return;
  const bool own = push_novel_inputs(ref, ref, true, stack);
  std::vector<EventRef> peers = push_peers(ref, stack);
  const bool brought = !peers.empty();
  if (!own && brought) arrivals_.push_back({ref, made.slot, std::move(peers)});
  if (own || brought) return;
  if (push_forward(ref, stack) || push_children(ref, stack)) return;
  if (const SlotRef unseen = read_unseen(made); unseen.event.process >= 0) {
    by_.add(Heuristic::read_unseen);
    return expand(unseen, next, stack, origins);
  }
  by_.add(taken_for_known(ref));
  origins.push_back({ref, made.slot, false, false, next});
}

// By what the inputs of an origin pass for the other run's.
Heuristics Flow::taken_for_known(const EventRef& ref) const {
  Heuristics by;
  const EventSlots slots = mine_.log(ref).slots_of(mine_.event(ref));
  for (const Slot& slot : slots) {
    if (slot.kind != SlotKind::in) continue;
    if (const auto one = known_.standing({ref, slots.index_of(slot)}).by) by.add(*one);
  }
  return by;
}

// The wanted value's maker left what its partner left: it is not the one the other run has here. Of
// an operator around the maker too: there one run alone has written the tensor again since.
//   exp_avg_var.mul_(b2).addcmul_(g, g)      max(m, exp_avg_var.add_(eps), out=m)   in b only
bool Flow::chosen(const Work& work, const SlotRef& made) const {
  if (made.event == work.wanted.event) return false;
  const std::optional<Standing> wanted = known_.beside_counterpart(work.wanted);
  if (!wanted || !wanted->differs) return false;
  const std::optional<Standing> left = known_.beside_counterpart(made);
  return left && !left->differs;
}

void Flow::trace(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins) {
  const size_t before = stack.size(), found = origins.size();
  by_ = work.by;
  trace_from(work, stack, origins);
  for (size_t i = before; i < stack.size(); ++i) {
    if (stack[i].reader.process < 0) stack[i].reader = work.reader;
    stack[i].by = by_;
  }
  for (size_t i = found; i < origins.size(); ++i) origins[i].by = by_;
}

void Flow::trace_from(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins) {
  const Slot& wanted = mine_.slot(work.wanted);
  // A result is made by its own event at the latest, an input by an event before its consumer.
  const bool result = wanted.kind != SlotKind::in;
  const EventRef& until = result ? work.wanted.event : work.consumer;
  SlotRef made = mine_.memory().writer(until, wanted, result);
  // Memory does not tell: the first to make a value of this name.
  if (made.event.process < 0)
    made = mine_.producer(value_key(mine_.log(work.wanted.event), wanted), until, result);
  // An equal value from before is not where this event's result comes from.
  if (result &&
      (made.event.process != until.process || made.event.event < mine_.event(until).begin))
    made = work.wanted;
  // Carried over from a step of this run alone: that one operator reads it is where they part.
  const bool carried = made.event.process >= 0 && besides(made.event);
  if (carried || (made.event.process >= 0 && chosen(work, made))) {
    if (visited_.insert(id(work.wanted.event) | 1ull << 62).second)
      origins.push_back({work.wanted.event, work.wanted.slot, false, true, work.reader});
    return;
  }
  if (made.event.process >= 0) {
    if (one_sided(work.wanted.event) && !one_sided(made.event)) inherits_.insert(id(work.reader));
    return expand(made, work.reader, stack, origins);
  }

  // Nobody made this value as such: parts or views of what somebody made?
  if (trace_parts(work, stack, origins) || push_summed(work, stack) || push_reduced(work, stack))
    return;
  if (known_.discounting() && reduced_below(work)) return;
  if (visited_.insert(id(work.wanted.event) | 1ull << 63).second)
    origins.push_back({work.wanted.event, work.wanted.slot, true, false, work.reader});
}

// Goes on to the novel parts of the memory a value lies on; known parts, put together as only this
// run does, end the walk. False: the memory does not explain the value.
bool Flow::trace_parts(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins) {
  const Slot& wanted = mine_.slot(work.wanted);
  Memory::Parts parts = mine_.memory().parts(work.consumer, wanted);
  bool any = false;
  for (const SlotRef& part : parts.left)
    if (differs(part)) expand(part, work.reader, stack, origins), any = true;
  if (any) return true;
  if (trace_overwrite(wanted, parts, work.reader, origins)) return true;
  if (!known_.relaid_parts(wanted, parts)) return false;
  if (!known_.discounting() && visited_.insert(id(work.wanted.event) | 1ull << 63).second)
    origins.push_back(
        {work.wanted.event, work.wanted.slot, wanted.kind == SlotKind::in, false, work.reader});
  return true;
}

// A known value of this extent, then parts of it written over with known values. The other run
// lacks the writing, so that is where the value comes from.
bool Flow::trace_overwrite(const Slot& wanted, const Memory::Parts& parts, const EventRef& reader,
                           std::vector<Origin>& origins) {
  if (!parts.complete || parts.left.size() < 2) return false;
  const Slot& oldest = mine_.slot(parts.left.back());
  if (oldest.address != wanted.address || oldest.size_bytes != wanted.size_bytes) return false;
  for (size_t i = 0; i + 1 < parts.left.size(); ++i)
    if (visited_.insert(id(parts.left[i].event)).second)
      origins.push_back({parts.left[i].event, parts.left[i].slot, false, false, reader});
  return true;
}

// A gradient at the optimizer of several ranks: averaged below Python, from gradients both runs
// know.
bool Flow::reduced_below(const Work& work) const {
  return mine_.run().processes.size() > 1 &&
         mine_.event(work.wanted.event).kind == EventKind::optimizer &&
         mine_.log(work.wanted.event).text(mine_.slot(work.wanted).name).starts_with("grad");
}

std::vector<Origin> Flow::origins(const std::vector<SlotRef>& sinks) {
  std::vector<Origin> found;
  std::vector<Work> stack;
  for (const SlotRef& sink : sinks) stack.push_back({sink, sink.event, sink.event});
  while (!stack.empty()) {
    Work work = stack.back();
    stack.pop_back();
    trace(work, stack, found);
  }
  std::sort(found.begin(), found.end(), [](const Origin& x, const Origin& y) {
    return std::tie(x.event.event, x.event.process) < std::tie(y.event.event, y.event.process);
  });
  return found;
}

}  // namespace opguard
