// Two different questions are answered here.
//
//   state_differences          of whole runs: pairs of state records, and whether they are equal
//   random_state_difference    before two events: the last records of both runs, matched from there
//                              back
//
// Going back, stretches are counted from the event: the last step's states with the last step's. A
// stretch is what begins with a record of all generators, and goes on with one before each draw.
//
//   a   [start] [load] [step 0: draw draw] [step 1: draw]      event
//   b          [start] [step 0: draw draw] [step 1: draw]      event
//
// Counterexample: a generator that differs from the start and is equal at the end. It was seeded
// alike, and does not matter.
#include "align/judge/random_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "align/pair/slot_pairs.h"
#include "record/kept_values.h"
#include "record/generators.h"

namespace opguard {
namespace {

// The records of one process before an event, per stretch, from the last one back. Each has the
// states that began it (a step, a loaded checkpoint) and those before each draw of it, in order.
std::vector<std::vector<Event>> states_before(const ProcessLog& log, uint32_t event) {
  std::vector<std::vector<Event>> stretches;
  for (uint32_t i = 0; i < log.events.size() && i <= event; ++i) {
    if (log.events.kind(i) != EventKind::state || keeps_values(log.text(log.events[i].boundary)))
      continue;
    if (stretches.empty() || log.text(log.events[i].boundary) != kGenerators)
      stretches.emplace_back();
    stretches.back().push_back(log.events[i]);
  }
  std::reverse(stretches.begin(), stretches.end());
  return stretches;
}

// Records of two runs that stand for the same moment, the last first: the same draw of the same
// stretch. Stretches are counted from the last one back: a run that loads one checkpoint more has
// one more at its beginning. A draw that only one run makes, the last of its stretch, has no
// counterpart and tells nothing.
std::vector<std::pair<Event, Event>> moments_before(const ProcessLog& log_a, uint32_t a,
                                                    const ProcessLog& log_b, uint32_t b) {
  const auto in_a = states_before(log_a, a), in_b = states_before(log_b, b);
  std::vector<std::pair<Event, Event>> moments;
  for (size_t back = 0; back < std::min(in_a.size(), in_b.size()); ++back)
    for (size_t i = std::min(in_a[back].size(), in_b[back].size()); i-- > 0;)
      moments.emplace_back(in_a[back][i], in_b[back][i]);
  return moments;
}

std::map<std::string, Fingerprint> generators(const ProcessLog& log, const Event& state) {
  std::map<std::string, Fingerprint> values;
  for (const Slot& slot : log.slots_of(state))
    if (!(slot.flags & kUnreadable)) values[log.text(slot.name)] = slot.value;
  return values;
}

// When a generator's states parted, from its records of both runs, the last first.
class Parting {
 public:
  void add(uint32_t step, bool equal) {
    if (equal_) return;
    ++records_;
    if (equal)
      equal_ = step;
    else
      first_ = step;
  }

  // The record at the start of the run alone tells nothing: programs seed themselves after it.
  bool known() const { return first_ && (equal_ || records_ > 1); }

  bool found() const { return equal_.has_value(); }

  Reason since(const std::string& generator) const {
    if (!equal_) return {.kind = ReasonKind::parted_at_start, .names = {generator}};
    return {.kind = *equal_ == *first_ ? ReasonKind::parted_at_draw : ReasonKind::parted_at_step,
            .numbers = {*first_, *equal_},
            .names = {generator}};
  }

 private:
  std::optional<uint32_t> first_, equal_;  // steps: the first that differs, the last before it
  uint32_t records_ = 0;
};

// Where in the runs generators of one name differ, over the pairs of one process.
class StateHistory {
 public:
  void add(const Slot& x, const Slot& y, const EventRef& a, const EventRef& b) {
    const bool equal = same_bytes(x, y);
    if (found_.records++ == 0) {
      found_.from_start = !equal;
      first_[0] = x.value, first_[1] = y.value;
    }
    found_.drawn |= x.value != first_[0] || y.value != first_[1];
    found_.to_end = !equal;
    if (!equal && found_.differing++ == 0) found_.a = a, found_.b = b;
  }

  StateDifference difference(const std::string& generator) const {
    StateDifference result = found_;
    result.generator = generator;
    return result;
  }

 private:
  StateDifference found_;
  Fingerprint first_[2];
};

}  // namespace

Reason state_reason(const Run& a, const StateDifference& state) {
  if (state.from_start)
    return {.kind = ReasonKind::state_differs,
            .numbers = {0, state.differing, state.records},
            .names = {state.generator}};
  const uint32_t step = a.processes[state.a.process].events[state.a.event].step;
  if (state.differing == 1 && !state.to_end)
    return {.kind = ReasonKind::state_differs_once, .numbers = {step}, .names = {state.generator}};
  return {.kind = ReasonKind::state_differs_since,
          .numbers = {step, state.differing, state.records},
          .names = {state.generator}};
}

std::vector<StateDifference> state_differences(const Run& a, const Run& b,
                                               const Alignment& alignment) {
  std::vector<StateDifference> found;
  for (const ProcessPair& both : alignment.processes) {
    if (both.a < 0 || both.b < 0) continue;
    const ProcessLog &log_a = a.processes[both.a], &log_b = b.processes[both.b];
    std::map<std::string, StateHistory> histories;
    for (const Pair& pair : both.pairs) {
      if (log_a.events.kind(pair.a) != EventKind::state || pair.equality == Equality::hidden)
        continue;
      const Event &x = log_a.events[pair.a], &y = log_b.events[pair.b];
      // How a run was set up that goes on from elsewhere is not where the runs are compared from.
      if (keeps_values(log_a.text(x.boundary)) || both.steps.besides(0, x.step) ||
          both.steps.besides(1, y.step))
        continue;
      for (const SlotPair& slot : pair_slots(log_a, x, log_b, y))
        if (slot.a && slot.b && !((slot.a->flags | slot.b->flags) & kUnreadable))
          histories[log_a.text(slot.a->name)].add(*slot.a, *slot.b, {both.a, pair.a},
                                                  {both.b, pair.b});
    }
    for (const auto& [generator, history] : histories)
      if (StateDifference state = history.difference(generator); state.differing > 0)
        found.push_back(std::move(state));
  }
  return found;
}

bool matters(const StateDifference& state) {
  return state.drawn && !(state.from_start && !state.to_end);
}

bool parted_for_good(const StateDifference& state) {
  return matters(state) && !state.from_start && state.to_end;
}

void tell_states(const Run& a, Verdict& verdict) {
  std::vector<std::pair<Reason, std::vector<int32_t>>> told;  // with the ranks
  for (const StateDifference& state : verdict.states) {
    if (!matters(state)) continue;
    const Reason reason = state_reason(a, state);
    auto at = std::find_if(told.begin(), told.end(),
                           [&](const auto& known) { return known.first == reason; });
    if (at == told.end()) at = told.insert(at, {reason, {}});
    at->second.push_back(a.processes[state.a.process].rank);
  }
  for (const auto& [reason, ranks] : told) {
    Reasons note = {reason};
    if (ranks.size() > 1)
      note.push_back({.kind = ReasonKind::on_processes, .numbers = {ranks.size()}});
    else if (a.processes.size() > 1)
      note.push_back({.kind = ReasonKind::on_rank, .numbers = {uint64_t(ranks[0])}});
    verdict.notes.push_back(std::move(note));
  }
}

Reasons random_state_difference(const Run& a, const EventRef& at_a, const Run& b,
                                const EventRef& at_b) {
  if (at_a.process < 0 || at_b.process < 0) return {};
  const ProcessLog &log_a = a.processes[at_a.process], &log_b = b.processes[at_b.process];
  std::map<std::string, Parting> partings;
  for (const auto& [x, y] : moments_before(log_a, at_a.event, log_b, at_b.event)) {
    const auto in_a = generators(log_a, x), in_b = generators(log_b, y);
    for (const auto& [name, value] : in_a)
      if (auto other = in_b.find(name); other != in_b.end())
        partings[name].add(x.step, value == other->second);
    // A stretch begins with the states of all generators, a draw with those it may use.
    if (log_a.text(x.boundary) != kGenerators &&
        std::all_of(partings.begin(), partings.end(),
                    [](const auto& parting) { return parting.second.found(); }))
      break;
  }
  Reasons parted;
  for (const auto& [name, parting] : partings)
    if (parting.known()) parted.push_back(parting.since(name));
  return parted;
}

}  // namespace opguard
