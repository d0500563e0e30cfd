// Names of sites and modules are told once each, three at most: "model forward, train forward,
// ...". A group without a place is its phase alone.
#include "align/judge/parted_parts.h"

#include <algorithm>
#include <string>
#include <vector>

#include "align/judge/pivot_view.h"

namespace opguard {

Reason parted_parts(const DifferingGroups& groups) {
  constexpr size_t kMostNames = 3;
  const DifferingGroup& first = groups.differing[0];
  Reason parts{.kind = ReasonKind::parted_event,
               .numbers = {groups.differing.size(), groups.of, first.micro_batch},
               .names = {first.where, phase_name(first.phase)}};
  parts.events[0].process = groups.process;
  if (groups.depth == GroupDepth::event) return parts;
  parts.kind = ReasonKind::parted_parts;
  parts.names = {};
  std::vector<std::string> names;
  for (const DifferingGroup& group : groups.differing) {
    const std::string text =
        group.where.empty() ? phase_name(group.phase) : group.where + " " + phase_name(group.phase);
    if (std::find(names.begin(), names.end(), text) == names.end()) names.push_back(text);
  }
  for (size_t i = 0; i < std::min(names.size(), kMostNames); ++i)
    parts.names[0] += (i > 0 ? ", " : "") + names[i];
  if (names.size() > kMostNames) parts.names[0] += ", ...";
  return parts;
}

}  // namespace opguard
