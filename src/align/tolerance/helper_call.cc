// A call stack has the innermost caller first. Stacks of one operator are compared from there
// outwards.
//
//   the operator   groups.py:32
//   now            update.py:66 <- train.py:9
//   before         update.py:41 <- train.py:9      the same helper, called from elsewhere
//
// The two differ in the first caller, so line 66 of update.py is named. If that function ran no
// operator of its own, and several places had called it, the next caller would be.
//
// Counterexample: a helper that ran for the first time. That it works has not been seen.
#include "align/tolerance/helper_call.h"

#include <algorithm>
#include <unordered_set>

#include "align/values/value_index.h"
#include "support/qualified_name.h"

namespace opguard {

void HelperCalls::read() {
  if (std::exchange(read_, true)) return;
  for (size_t p = 0; p < run_.processes.size(); ++p) {
    const ProcessLog& log = run_.processes[p];
    for (const auto& [boundary, at] : log.locations)
      have_operators_.emplace(at.path, scope_of(at.function));
    for (uint64_t n = 0; n < log.sketches.size(); ++n) {
      const auto i = static_cast<uint32_t>(log.sketches.event(n));
      const uint32_t calls = log.sketches.code_of_event(i).calls;
      if (calls != kNone)
        ran_[{static_cast<int32_t>(p), log.events[i].boundary}].push_back({i, calls});
    }
  }
}

const std::vector<Caller>& HelperCalls::callers(int32_t process, uint32_t string) {
  const auto [it, fresh] = known_.try_emplace({process, string});
  if (fresh) it->second = callers_of(run_.processes[static_cast<size_t>(process)].text(string));
  return it->second;
}

// A call may span lines, and calls nest: the one that begins last around the caller's line is
// meant.
Location HelperCalls::place(const Caller& caller, const std::string& callee) const {
  const FunctionCall* found = nullptr;
  for (const FunctionCall& call : run_.calls.all)
    if (call.at.path == caller.path && call.at.line <= caller.line &&
        caller.line <= call.at.end_line && call.callee.scope == callee &&
        (found == nullptr || call.at.line > found->at.line))
      found = &call;
  if (found != nullptr) return found->at;
  Location at;
  at.path = at.file = caller.path;
  at.line = caller.line;
  at.function = scope_of(caller.function);
  return at;
}

std::optional<Location> HelperCalls::out_to(const EventRef& ref,
                                            const std::set<std::string>& functions) {
  const ProcessLog& log = run_.processes[static_cast<size_t>(ref.process)];
  const auto at = log.locations.find(log.text(log.events[ref.event].boundary));
  const uint32_t string = log.sketches.code_of_event(ref.event).calls;
  if (string == kNone || at == log.locations.end()) return {};
  std::string callee = scope_of(at->second.function);
  if (functions.contains(callee)) return {};
  for (const Caller& caller : callers(ref.process, string)) {
    const std::string scope = scope_of(caller.function);
    if (functions.contains(scope)) return place(caller, callee);
    callee = scope;
  }
  return {};
}

std::optional<Location> HelperCalls::apart_from(const EventRef& event, const EventRef& other) {
  // The operator's own line comes first.
  const auto stack = [&](const EventRef& ref) {
    const ProcessLog& log = run_.processes[static_cast<size_t>(ref.process)];
    std::vector<Caller> lines;
    const auto at = log.locations.find(log.text(log.events[ref.event].boundary));
    if (at != log.locations.end())
      lines.push_back({at->second.path, at->second.line, at->second.function});
    const auto& calls = callers(ref.process, log.sketches.code_of_event(ref.event).calls);
    lines.insert(lines.end(), calls.begin(), calls.end());
    return lines;
  };
  const std::vector<Caller> mine = stack(event), theirs = stack(other);
  const auto [at, of_other] =
      std::mismatch(mine.rbegin(), mine.rend(), theirs.rbegin(), theirs.rend());
  if (at == mine.rend() || of_other == theirs.rend() || std::next(at) == mine.rend() ||
      at->path != of_other->path || scope_of(at->function) != scope_of(of_other->function))
    return {};
  return place(*at, scope_of(std::next(at)->function));
}

std::optional<Location> HelperCalls::of_parts(const EventRef& node) {
  const ProcessLog& log = run_.processes[static_cast<size_t>(node.process)];
  const Event event = log.events[node.event];
  if (event.kind != EventKind::node || event.forward == kNone) return {};
  std::unordered_set<ValueKey, ValueKeyHash> exchanged;
  const auto is_exchanged = [&](const Event& of) {
    const EventSlots slots = log.slots_of(of);
    return std::any_of(slots.begin(), slots.end(), [&](const Slot& slot) {
      return slot.kind == SlotKind::out && has_value(slot) &&
             exchanged.contains(value_key(log, slot));
    });
  };
  for (uint64_t i = 0; i < log.events.size(); ++i) {
    const Event other = log.events[i];
    if (!communicates(other)) continue;
    const EventSlots slots = log.slots_of(other);
    for (const Slot& slot : slots)
      if (slot.kind == SlotKind::in && has_value(slot)) exchanged.insert(value_key(log, slot));
  }
  if (is_exchanged(event)) return {};
  for (uint64_t i = 0; i < log.events.size(); ++i)
    if (const Event other = log.events[i]; other.kind == EventKind::node &&
                                           other.boundary == event.boundary &&
                                           other.node == event.node && is_exchanged(other))
      return of({node.process, event.forward});
  return {};
}

std::optional<Location> HelperCalls::of(const EventRef& ref) {
  const ProcessLog& log = run_.processes[static_cast<size_t>(ref.process)];
  const Event event = log.events[ref.event];
  const auto location = log.locations.find(log.text(event.boundary));
  if (event.kind == EventKind::node || location == log.locations.end()) return {};
  read();
  const auto ran = ran_.find({ref.process, event.boundary});
  if (ran == ran_.end()) return {};
  const auto self = std::find_if(ran->second.begin(), ran->second.end(),
                                 [&](const Execution& e) { return e.event == ref.event; });
  if (self == ran->second.end()) return {};
  const std::vector<Caller> stack = callers(ref.process, self->calls);
  // Another call of what is called at `level` that came before, by the same way from there on.
  const auto called_elsewhere = [&](size_t level) {
    return std::any_of(ran->second.begin(), self, [&](const Execution& e) {
      const std::vector<Caller>& other = callers(ref.process, e.calls);
      return other.size() > level &&
             std::equal(other.begin(), other.begin() + static_cast<ptrdiff_t>(level),
                        stack.begin()) &&
             other[level] != stack[level];
    });
  };
  if (stack.empty() || !called_elsewhere(0)) return {};
  size_t level = 0;
  while (level + 1 < stack.size() &&
         !have_operators_.contains({stack[level].path, scope_of(stack[level].function)}) &&
         called_elsewhere(level + 1))
    ++level;
  const std::string callee =
      scope_of(level == 0 ? location->second.function : stack[level - 1].function);
  return place(stack[level], callee);
}

}  // namespace opguard
