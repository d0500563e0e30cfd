// Four questions, each answered by its own walk over the log.
//
//   rank_parameters    which operator wrote this on one rank alone?            differing_writer()
//   save               who made what the checkpoint has under this name?       maker_of_saved()
//   parameter has_grad after which operator does nothing want a gradient?      cut_behind()
//   parameter copied   who copied this parameter from another one?             copier_of()
//
// Counterexample: a rule of any other view, or of another column, has no such walk. The place where
// it was seen stays.
//
// The cost: events up to the step on each rank that is asked, with their slots. cut_behind()
// compares each slot that is read with each that was made from the parameter before.
#include "invariants/places/source_of.h"

#include <algorithm>
#include <vector>

#include "invariants/places/event_search.h"

namespace opguard {

namespace {

// A rank may have several processes, those of loaders too: the one with most events is the one that
// trains.
const ProcessLog* log_of(const Run& run, int32_t rank) {
  const ProcessLog* found = nullptr;
  for (const ProcessLog& log : run.processes)
    if ((rank < 0 || log.rank == rank) && (!found || log.events.size() > found->events.size()))
      found = &log;
  return found;
}

std::optional<SourcePlace> place_of(const ProcessLog& log, uint64_t index, std::string because) {
  const Event event = log.events[index];
  auto at = log.locations.find(log.text(event.boundary));
  if (at == log.locations.end() || at->second.line == 0) return std::nullopt;
  return SourcePlace{at->first, at->second, log.rank, std::move(because)};
}

bool has_place(const ProcessLog& log, uint64_t index) {
  auto at = log.locations.find(log.text(log.events[index].boundary));
  return at != log.locations.end() && at->second.line > 0;
}

// The first of the optimizer's events of a step that has the parameter, and its slot.
//
//   log "rank 1", events 40 to 61 of step 2, optimizer at 61, slot "grad:fc1.weight"
struct StepSlot {
  const ProcessLog* log = nullptr;
  EventRange range;  // events of the step before the optimizer's
  Slot slot;         // "grad:NAME", or "param:NAME" where it has no gradient
};

std::optional<StepSlot> slot_at_step(const ProcessLog& log, uint32_t step, std::string_view prefix,
                                     std::string_view name) {
  EventRange range = events_of_step(log, step);
  for (uint64_t i = range.first; i < range.last; ++i) {
    const Event event = log.events[i];
    if (event.kind != EventKind::optimizer) continue;
    auto slot = find_slot(log, event, [&](const Slot& s) {
      std::string_view text = log.text(s.name);
      return s.kind == SlotKind::in && text.starts_with(prefix) &&
             names_tensor(text.substr(prefix.size()), name);
    });
    if (slot) return StepSlot{&log, {range.first, i}, *slot};
  }
  return std::nullopt;
}

// Ranks wrote the same tensor by other operators, or one of them more often. Each rank is compared
// with the first one, writer by writer in their order.
//
//   rank 0   backward, all_reduce, div_          rank 1   backward, all_reduce, div_, zero_
//   the first difference is at 3, and rank 1 wrote more often: its zero_
//
// Events, and so boundaries, are of one program: the same statement has the same boundary on each
// rank.
std::optional<SourcePlace> differing_writer(const Run& run, const PlaceQuestion& question,
                                            std::string_view prefix) {
  std::vector<std::pair<StepSlot, std::vector<uint64_t>>> writers;
  for (const ProcessLog& log : run.processes)
    if (auto slot = slot_at_step(log, question.step, prefix, question.name))
      writers.push_back({*slot, writers_of(log, slot->range, slot->slot)});
  if (writers.size() < 2) return std::nullopt;
  const auto& [first, sequence] = writers[0];
  for (size_t other = 1; other < writers.size(); ++other) {
    const auto& [second, their] = writers[other];
    for (size_t i = 0; i < std::max(sequence.size(), their.size()); ++i) {
      const bool a = i < sequence.size(), b = i < their.size();
      std::string in_a = a ? first.log->text(first.log->events[sequence[i]].boundary) : "";
      std::string in_b = b ? second.log->text(second.log->events[their[i]].boundary) : "";
      if (a && b && in_a == in_b) continue;
      // Both wrote something else here: the longer sequence has something added. Of equally long
      // ones it is the first rank's.
      const bool of_a = a && (!b || sequence.size() >= their.size());
      const ProcessLog& log = of_a ? *first.log : *second.log;
      const ProcessLog& without = of_a ? *second.log : *first.log;
      return place_of(log, of_a ? sequence[i] : their[i],
                      "the first that writes it on rank " + std::to_string(log.rank) +
                          " and not on rank " + std::to_string(without.rank));
    }
  }
  // The same operators: the last of them was given other values, or computes otherwise.
  for (auto it = sequence.rbegin(); it != sequence.rend(); ++it)
    if (has_place(*first.log, *it))
      return place_of(*first.log, *it, "the last that writes it on every rank");
  return std::nullopt;
}

// Who made a value that a checkpoint holds under a parameter's name.
std::optional<SourcePlace> maker_of_saved(const Run& run, const PlaceQuestion& question) {
  const ProcessLog* log = log_of(run, question.rank);
  if (!log) return std::nullopt;
  for (uint64_t i = log->events.size(); i-- > 0;) {
    const Event event = log->events[i];
    if (event.kind != EventKind::op || event.step > question.step + 1) continue;
    std::string_view callee = log->text(event.boundary);
    if (callee.find("save") == std::string_view::npos) continue;
    auto slot = find_slot(*log, event, [&](const Slot& s) {
      return s.kind == SlotKind::in && names_tensor(log->text(s.name), question.name);
    });
    if (!slot) continue;
    // The last such save decides, whether the maker has a place or not.
    if (auto maker = maker_of(*log, i, slot->value))
      return place_of(*log, *maker, "it made the value that is saved");
    return std::nullopt;
  }
  return std::nullopt;
}

// Forward from a parameter that has no gradient. The first operator is looked for that was given
// what wants a gradient, and whose result takes part in no backward pass.
//
//   h = fc(x)          reads the parameter, in the graph: h is of the flow
//   h2 = h.detach()    given h, which wants a gradient; not in the graph: this one
std::optional<SourcePlace> cut_behind(const Run& run, const PlaceQuestion& question) {
  const ProcessLog* log = log_of(run, question.rank);
  if (!log) return std::nullopt;
  // A module's call reads it as "param:weight": it is known by its value.
  const auto at = slot_at_step(*log, question.step, "param:", question.name);
  if (!at) return std::nullopt;
  const EventRange range = at->range;
  std::vector<Slot> flow;
  for (uint64_t i = range.first; i < range.last; ++i) {
    const Event event = log->events[i];
    if (event.kind != EventKind::op || event.phase != Phase::forward) continue;
    bool reads = false, wants = false, flows = false;
    const EventSlots slots = log->slots_of(event);
    for (const Slot& slot : slots) {
      if (slot.kind != SlotKind::in) continue;
      std::string_view text = log->text(slot.name);
      const bool parameter = text.starts_with("param:") || text.find(".param:") != text.npos;
      const bool own = is_value(slot) && slot.value == at->slot.value;
      const bool of_flow = std::any_of(flow.begin(), flow.end(), [&](const Slot& held) {
        return is_value(slot) && slot.value == held.value;
      });
      reads = reads || own || of_flow;
      flows = flows || of_flow;
      wants = wants || (wants_gradient(slot) && (of_flow || parameter));
    }
    if (!reads) continue;
    const bool in_graph = event.flags & kInGraph;
    // Where an event does not tell what wants a gradient, nothing is said of it.
    if (flows && wants && tells_gradients(event) && !in_graph)
      return place_of(*log, i, "what it is given wants a gradient, and its result does not");
    // What an operator outside of the graph made leads nowhere: the flow ends with it.
    if (!in_graph) continue;
    for (const Slot& slot : slots)
      if (slot.kind != SlotKind::in && is_value(slot)) flow.push_back(slot);
  }
  return std::nullopt;
}

// The operator that made a parameter's first value from another tensor of the same value: a copy.
std::optional<SourcePlace> copier_of(const Run& run, const PlaceQuestion& question) {
  const ProcessLog* log = log_of(run, question.rank);
  if (!log) return std::nullopt;
  auto at = slot_at_step(*log, 0, "param:", question.name);
  if (!at) return std::nullopt;
  for (uint64_t i = at->range.last; i-- > 0;) {
    const Event event = log->events[i];
    if (event.kind != EventKind::op) continue;
    bool copies = false, reads = false;
    const EventSlots slots = log->slots_of(event);
    for (const Slot& slot : slots) {
      if (slot.value != at->slot.value) continue;
      if (slot.kind == SlotKind::in)
        reads = reads || !overlap(slot, at->slot);
      else
        copies = copies || overlap(slot, at->slot);
    }
    if (reads && copies) return place_of(*log, i, "it copies what another parameter holds");
  }
  return std::nullopt;
}

}  // namespace

std::optional<SourcePlace> source_of(const Run& run, const PlaceQuestion& question) {
  if (question.view == "rank_parameters") {
    if (auto found = differing_writer(run, question, "grad:")) return found;
    return differing_writer(run, question, "param:");
  }
  if (question.view == "save") return maker_of_saved(run, question);
  if (question.view == "parameter" && question.column == "has_grad")
    return cut_behind(run, question);
  if (question.view == "parameter" && question.column == "copied") return copier_of(run, question);
  return std::nullopt;
}

}  // namespace opguard
