#include "align/random_state.h"

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "record/random_operator.h"

namespace opguard {
namespace {

// The states of one process before an event: of each generator, in order.
std::vector<Event> states_before(const ProcessLog& log, uint32_t event) {
  std::vector<Event> states;
  for (uint32_t i = 0; i < log.events.size() && i <= event; ++i)
    if (log.events.kind(i) == EventKind::state && log.text(log.events[i].boundary) != kGenerators)
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

}  // namespace

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
