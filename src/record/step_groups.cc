// From fine to coarse, by leaving out what tells groups apart, and adding up:
//
//   site               micro-batch 0, forward, model.softmax:77ab    micro-batch 1, the same
//   module_of_batch    micro-batch 0, forward, model                 micro-batch 1, the same
//   module             forward, model
//   phase              forward
//
// A group stands where the first of its events did.
#include "record/step_groups.h"

#include "record/format.h"

namespace opguard {

std::string_view module_of_site(std::string_view boundary) {
  const size_t colon = boundary.rfind(':');
  if (boundary.starts_with('<') || colon == std::string_view::npos) return boundary;
  const size_t dot = boundary.rfind('.', colon);
  return dot == std::string_view::npos ? boundary : boundary.substr(0, dot);
}

std::vector<StepGroup> fold_groups(const std::vector<StepGroup>& events, GroupDepth depth) {
  if (depth == GroupDepth::event) return events;
  std::vector<StepGroup> folded;
  std::unordered_map<uint64_t, size_t> places;
  for (StepGroup group : events) {
    if (depth > GroupDepth::site)
      group.boundary = depth == GroupDepth::phase ? kNone : group.of_module;
    if (depth > GroupDepth::module_of_batch) group.micro_batch = kNone;
    const uint64_t key = uint64_t{group.boundary} << 32 |
                         uint64_t{group.micro_batch & 0x3fffffff} << 2 | uint64_t(group.phase);
    const auto [place, is_first] = places.try_emplace(format::mix(key), folded.size());
    if (is_first)
      folded.push_back(group);
    else
      folded[place->second].sum += group.sum;
  }
  return folded;
}

void SiteModules::add_text(std::string_view text) {
  const auto string = static_cast<uint32_t>(modules_.size());
  modules_.push_back(
      first_of_module_.try_emplace(std::string(module_of_site(text)), string).first->second);
}

}  // namespace opguard
