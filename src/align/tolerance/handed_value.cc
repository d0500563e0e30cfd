// Modules of the two runs are matched by their parameters' names alone: port.names has pairs.
//
//   "encoder.0.norm.weight" is "blocks.0.norm1.weight"     counterpart("blocks.0.norm1") is
//                                                          "encoder.0.norm"
//   the operator stands in "encoder.0.attention"           both lie in "encoder.0"
//
// functions_ says which functions ran operators in a module. The call is looked for on the way from
// the operator out to one of those of "encoder.0".
#include "align/tolerance/handed_value.h"

#include <algorithm>

#include "support/qualified_name.h"

namespace opguard {
namespace {

// "" for the root and for none.
std::string module_at(const Run& run, const EventRef& ref) {
  const ProcessLog& log = run.processes[static_cast<size_t>(ref.process)];
  const uint32_t module = log.sketches.code_of_event(ref.event).module;
  const std::string& name = module == kNone ? std::string() : log.text(module);
  return name == "<root>" ? "" : name;
}

// "encoder.0" of "encoder.0.attention" and "encoder.0.norm".
std::string holds_both(const std::string& x, const std::string& y) {
  const auto differ = std::mismatch(x.begin(), x.end(), y.begin(), y.end());
  const auto at = static_cast<size_t>(differ.first - x.begin());
  const bool x_ends = at == x.size() || x[at] == '.', y_ends = at == y.size() || y[at] == '.';
  if (x_ends && y_ends) return x.substr(0, at);
  const size_t dot = x.substr(0, at).rfind('.');
  return dot == std::string::npos ? "" : x.substr(0, dot);
}

}  // namespace

HandedValues::HandedValues(const Run& reference, const Run& candidate, const Comparison& comparison)
    : a_(reference), b_(candidate), comparison_(comparison) {
  if (!comparison.port.told) return;
  for (size_t p = 0; p < b_.processes.size(); ++p) {
    const ProcessLog& log = b_.processes[p];
    for (uint64_t n = 0; n < log.sketches.size(); ++n) {
      const EventRef ref{static_cast<int32_t>(p), static_cast<uint32_t>(log.sketches.event(n))};
      const auto at = log.locations.find(log.text(log.events[ref.event].boundary));
      if (at != log.locations.end())
        functions_[module_at(b_, ref)].insert(scope_of(at->second.function));
    }
  }
}

// The innermost module that holds all parameters which the reference's module has: of two that lie
// in "a.b.c" and "a.b.d" it is "a.b".
std::optional<std::string> HandedValues::counterpart(const std::string& module) const {
  std::optional<std::string> found;
  for (const auto& [mine, theirs] : comparison_.port.names) {
    if (!theirs.starts_with(module + ".")) continue;
    const std::string of = mine.substr(0, std::min(mine.rfind('.'), mine.size()));
    found = found ? holds_both(*found, of) : of;
  }
  return found;
}

bool HandedValues::is_part(const std::string& own, const std::string& theirs) const {
  return std::any_of(
      comparison_.port.names.begin(), comparison_.port.names.end(), [&](const auto& pair) {
        return pair.first.starts_with(own + ".") && pair.second.starts_with(theirs + ".");
      });
}

std::optional<Location> HandedValues::call(const PortPlace& place, HelperCalls& calls) const {
  if (place.a.process < 0 || place.b.process < 0) return {};
  const std::string theirs = module_at(a_, place.a);
  if (theirs.empty()) return {};
  const std::optional<std::string> mine = counterpart(theirs);
  const std::string own = module_at(b_, place.b);
  // With the reference's parameter it does what that one's operator does, to another value.
  if (!mine || (!place.reads_parameter && is_part(own, theirs))) return {};
  const std::string both = holds_both(*mine, own);
  const auto functions = functions_.find(both);
  if (both == own || functions == functions_.end()) return {};
  return calls.out_to(place.b, functions->second);
}

}  // namespace opguard
