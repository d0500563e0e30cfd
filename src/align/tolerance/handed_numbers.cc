// Numbers are compared as texts, as the log has them. What `.item()` returned and what `mul_` was
// given are the same characters if the program passed the number on untouched.
//
//   results "out=0.32822"     handed out
//   scalars "arg0=0.32822"    given: exact
//   scalars "arg0=0.16411"    halved in Python: all that was handed out in the step counts
//
// Counterexample: whole numbers and short ones, as -1 and 0.5. They stand in every program, and
// would lead anywhere.
#include "align/tolerance/handed_numbers.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace opguard {
namespace {

// Shorter ones, as 0.5, are found in every program.
constexpr size_t kLeastLength = 5;

bool is_of_number(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-' || c == '+';
}

// Those that are no whole numbers: "dim=-1, arg0=0.32822, arg1=1e-05" has two.
std::vector<std::string> fractions_in(std::string_view text) {
  std::vector<std::string> found;
  for (size_t at = 0; at < text.size();) {
    if (!is_of_number(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    while (end < text.size() && is_of_number(text[end])) ++end;
    const std::string_view word = text.substr(at, end - at);
    const size_t first = word.find_first_not_of("+-");
    if (word.size() >= kLeastLength && first != word.npos &&
        std::isdigit(static_cast<unsigned char>(word[first])) &&
        word.find_first_of(".e") != word.npos)
      found.emplace_back(word);
    at = end;
  }
  return found;
}

bool is_forward_op(const Event& event) {
  return event.kind == EventKind::op && event.phase != Phase::backward;
}

}  // namespace

HandedNumbers::HandedNumbers(const Run& reference, const Run& candidate) : candidate_(candidate) {
  for (const ProcessLog& log : reference.processes)
    for (uint64_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      if (is_forward_op(event) && event.scalars != kNone)
        given_[log.text(event.boundary)].insert(log.text(event.scalars));
    }
  for (size_t p = 0; p < candidate.processes.size(); ++p) {
    const ProcessLog& log = candidate.processes[p];
    for (uint32_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      if (!is_forward_op(event) || event.results == kNone) continue;
      if (auto numbers = fractions_in(log.text(event.results)); !numbers.empty())
        handed_[static_cast<int32_t>(p)].push_back({i, event.step, std::move(numbers)});
    }
  }
}

std::vector<EventRef> HandedNumbers::behind(const EventRef& ref) const {
  std::vector<EventRef> exact, all;
  const auto handed = handed_.find(ref.process);
  const ProcessLog& log = candidate_.processes[static_cast<size_t>(ref.process)];
  const Event event = log.events[ref.event];
  if (handed == handed_.end() || !is_forward_op(event) || event.scalars == kNone) return {};
  const std::string& text = log.text(event.scalars);
  const auto theirs = given_.find(log.text(event.boundary));
  if (theirs == given_.end() || theirs->second.contains(text)) return {};
  const std::vector<std::string> given = fractions_in(text);
  if (given.empty()) return {};
  for (const Handed& one : handed->second) {
    if (one.event >= ref.event) break;
    if (one.step != event.step) continue;
    const bool same = std::any_of(one.numbers.begin(), one.numbers.end(), [&](const auto& number) {
      return std::find(given.begin(), given.end(), number) != given.end();
    });
    (same ? exact : all).push_back({ref.process, one.event});
  }
  return exact.empty() ? all : exact;
}

}  // namespace opguard
