// Each dimension of each output against each number that the call was given.
//
//   generate(prompt, max_new_tokens=4, top_k=50) -> [1, 4]
//   four rows       out0.shape[0] less max_new_tokens, out0.shape[1] equal max_new_tokens,
//                   out0.shape[0] less top_k, out0.shape[1] less top_k
//
// Which of them means something is not asked here: runs of the program that keep one are the reason
// for a rule.
//
// Counterexample: a function of torch. What its arguments do to shapes is known, and says nothing
// of the program.
//
// The cost: a row for each dimension and number, of calls that have probes.
#include "invariants/views/function_arguments.h"

#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "invariants/views/row_maker.h"

namespace opguard {

namespace {

// Numbers of an event's scalars: "max_new_tokens=4, arg2=3, mode='x'".
std::vector<std::pair<std::string_view, int64_t>> numbers_in(std::string_view scalars) {
  std::vector<std::pair<std::string_view, int64_t>> found;
  while (!scalars.empty()) {
    const size_t end = std::min(scalars.find(", "), scalars.size());
    std::string_view part = scalars.substr(0, end);
    scalars.remove_prefix(std::min(end + 2, scalars.size()));
    const size_t equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    std::string_view text = part.substr(equals + 1);
    int64_t value = 0;
    auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    // "3" and not "3.5" nor "'x'": only whole numbers can be lengths.
    if (error == std::errc() && at == text.data() + text.size() && value > 0)
      found.push_back({part.substr(0, equals), value});
  }
  return found;
}

// The function's own name where the program defines it: callees of libraries say less.
bool is_own_call(const Location& location) {
  return location.line > 0 && !location.callee.empty() && location.callee.find("torch.") != 0 &&
         location.callee.find("F.") != 0;
}

}  // namespace

void argument_rows(const ProcessLog& log, CellTexts& texts, RowSink& sink) {
  for (uint64_t i = 0; i < log.events.size(); ++i) {
    if (log.events.kind(i) != EventKind::op) continue;
    const Event event = log.events[i];
    if (event.scalars == kNone || event.phase != Phase::forward) continue;
    auto at = log.locations.find(log.text(event.boundary));
    if (at == log.locations.end() || !is_own_call(at->second)) continue;
    const auto numbers = numbers_in(log.text(event.scalars));
    if (numbers.empty()) continue;
    const std::string place =
        at->second.path + ":" + std::to_string(at->second.line) + ":" + at->second.function;
    RowContext context{texts, sink, event.step, log.rank, event.start_ns, i};
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      if (slot.kind != SlotKind::out || slot.meta == kNone) continue;
      const Meta& meta = log.metas[slot.meta];
      for (size_t d = 0; d < meta.shape.size(); ++d)
        for (const auto& [name, value] : numbers) {
          RowMaker row(context, ViewNumber::argument);
          row.set(argument::function, at->second.callee);
          row.set(argument::output, log.text(slot.name) + ".shape[" + std::to_string(d) + "]");
          row.set(argument::argument, name);
          row.set(argument::relation, meta.shape[d] == value  ? "equal"
                                      : meta.shape[d] < value ? "less"
                                                              : "more");
          row.name = at->second.callee;
          row.place = place;
          row.detail = log.text(slot.name) + ".shape[" + std::to_string(d) + "] is " +
                       std::to_string(meta.shape[d]) + ", " + std::string(name) + " is " +
                       std::to_string(value);
          row.give();
        }
    }
  }
}

}  // namespace opguard
