#include "align/random_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "align/slot_pairs.h"
#include "record/kept_values.h"
#include "record/random_operator.h"

namespace opguard {
namespace {

// The states of one process before an event: of each generator, in order.
std::vector<Event> states_before(const ProcessLog& log, uint32_t event) {
  std::vector<Event> states;
  for (uint32_t i = 0; i < log.events.size() && i <= event; ++i)
    if (log.events.kind(i) == EventKind::state && log.text(log.events[i].boundary) != kGenerators &&
        !keeps_values(log.text(log.events[i].boundary)))
      states.push_back(log.events[i]);
  return states;
}

std::map<std::string, Fingerprint> generators(const ProcessLog& log, const Event& state) {
  std::map<std::string, Fingerprint> values;
  for (uint64_t s = state.first_slot; s < state.first_slot + state.slot_count; ++s)
    if (!(log.slots[s].flags & kUnreadable))
      values[log.text(log.slots[s].name)] = log.slots[s].value;
  return values;
}

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
    // One record cannot tell.
    result.drawn |= result.records < 2;
    return result;
  }

 private:
  StateDifference found_;
  Fingerprint first_[2];
};

std::string step_of(const Run& a, const StateDifference& state) {
  return std::to_string(a.processes[state.a.process].events[state.a.event].step);
}

std::string sentence(const Run& a, const StateDifference& state) {
  std::string text = "the random state of " + state.generator + " differs ";
  if (state.differing == 1 && !state.from_start && !state.to_end)
    return text + "in one record of step " + step_of(a, state) + " and agrees before and after";
  if (state.from_start)
    text += "since the start of the run";
  else
    text += "since step " + step_of(a, state);
  return text + ", in " + std::to_string(state.differing) + " of " + std::to_string(state.records) +
         (state.records == 1 ? " record" : " records");
}

}  // namespace

void add_random_states(const Run& a, const Run& b, const Alignment& alignment, Verdict& verdict) {
  std::vector<std::pair<std::string, std::vector<int32_t>>> sentences;  // with the ranks
  for (const ProcessPair& both : alignment.processes) {
    if (both.a < 0 || both.b < 0) continue;
    const ProcessLog &log_a = a.processes[both.a], &log_b = b.processes[both.b];
    std::map<std::string, StateHistory> histories;
    for (const Pair& pair : both.pairs) {
      if (log_a.events.kind(pair.a) != EventKind::state || pair.equality == Equality::hidden)
        continue;
      const Event &x = log_a.events[pair.a], &y = log_b.events[pair.b];
      if (keeps_values(log_a.text(x.boundary))) continue;
      for (const SlotPair& slot : pair_slots(log_a, x, log_b, y))
        if (slot.a && slot.b && !((slot.a->flags | slot.b->flags) & kUnreadable))
          histories[log_a.text(slot.a->name)].add(*slot.a, *slot.b, {both.a, pair.a},
                                                  {both.b, pair.b});
    }
    for (const auto& [generator, history] : histories) {
      StateDifference state = history.difference(generator);
      if (state.differing == 0) continue;
      verdict.states.push_back(state);
      // Seeded alike later on: what was before that, nobody used.
      if (!state.drawn || (state.from_start && !state.to_end)) continue;
      // Both began alike, and one has drawn what the other has not: the runs are not at one point.
      if (!state.from_start && state.to_end && verdict.outcome == Outcome::identical) {
        verdict.outcome = Outcome::diverged;
        verdict.why = sentence(a, state) + ", and somebody draws from it";
      }
      const std::string text = sentence(a, state);
      auto at = std::find_if(sentences.begin(), sentences.end(),
                             [&](const auto& known) { return known.first == text; });
      if (at == sentences.end()) at = sentences.insert(at, {text, {}});
      at->second.push_back(log_a.rank);
    }
  }
  for (const auto& [text, ranks] : sentences)
    verdict.notes.push_back(
        ranks.size() > 1         ? text + ", on " + std::to_string(ranks.size()) + " processes"
        : a.processes.size() > 1 ? text + ", on rank " + std::to_string(ranks[0])
                                 : text);
}

std::string random_state_difference(const Run& a, const EventRef& at_a, const Run& b,
                                    const EventRef& at_b) {
  if (at_a.process < 0 || at_b.process < 0) return "";
  const ProcessLog &log_a = a.processes[at_a.process], &log_b = b.processes[at_b.process];
  const auto states_a = states_before(log_a, at_a.event),
             states_b = states_before(log_b, at_b.event);
  // From the last one back: a run that loads one checkpoint more has one more at its beginning.
  const size_t count = std::min(states_a.size(), states_b.size());
  std::string text;
  if (count == 0) return text;
  std::map<std::string, std::pair<uint32_t, std::optional<uint32_t>>> since;  // first, last equal
  for (const auto& [name, value] : generators(log_a, states_a.back())) {
    uint32_t first = kNone;
    std::optional<uint32_t> equal;
    for (size_t back = 1; back <= count; ++back) {
      const Event &x = states_a[states_a.size() - back], &y = states_b[states_b.size() - back];
      const auto in_a = generators(log_a, x), in_b = generators(log_b, y);
      const auto va = in_a.find(name), vb = in_b.find(name);
      if (va == in_a.end() || vb == in_b.end()) break;
      if (va->second == vb->second) {
        equal = x.step;
        break;
      }
      first = x.step;
    }
    if (first != kNone) since[name] = {first, equal};
  }
  for (const auto& [name, steps] : since) {
    text += text.empty() ? "the random state of " : "; that of ";
    text += name + " differs since " +
            (steps.second ? "step " + std::to_string(steps.first) + " (equal up to step " +
                                std::to_string(*steps.second) + ")"
                          : "the start of the run");
  }
  return text;
}

}  // namespace opguard
