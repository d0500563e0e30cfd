// What one of several is to the difference, as far as the runs that were made tell:
//
//   f and h are causes; with f alone forced the runs part still    by h, so h is needed
//   f, h and g are; with f alone forced they part still            by h or by g: together
//   all but h as in run a, and they part                           h is needed
//   with h alone forced the first difference is another one        h acts
//
// A run for it is made where none of these is known and the runs allowed leave one.
#include "confirm/causes.h"

#include <algorithm>

namespace opguard {
namespace {

// Something differed still.
bool parts_by(const std::optional<Effect>& effect) {
  return effect == Effect::changed || effect == Effect::unchanged;
}

}  // namespace

void Causes::add(size_t trial, ProofState state, bool measured) {
  auto at = std::find_if(all_.begin(), all_.end(),
                         [&](const auto& cause) { return cause.first == trial; });
  if (at == all_.end()) at = all_.insert(at, {trial, {}});
  at->second.state = state;
  at->second.measured |= measured;
}

size_t Causes::first() const {
  return std::min_element(all_.begin(), all_.end(),
                          [&](const auto& x, const auto& y) {
                            return trials_.position(trials_[x.first].pivot) <
                                   trials_.position(trials_[y.first].pivot);
                          })
      ->first;
}

bool Causes::shown_needed(size_t k) const {
  if (trials_[k].left_out) return *trials_[k].left_out;
  if (all_.size() != 2) return false;
  const size_t other = all_[0].first == k ? all_[1].first : all_[0].first;
  return parts_by(trials_[other].alone);
}

Need Causes::need_of(size_t k) const {
  if (all_.size() == 1) return Need::only;
  if (shown_needed(k)) return Need::left_out;
  if (trials_[k].alone == Effect::changed) return Need::acts;
  const bool rest = std::any_of(all_.begin(), all_.end(), [&](const auto& cause) {
    return cause.first != k && parts_by(trials_[cause.first].alone);
  });
  return rest ? Need::together : Need::unasked;
}

void Causes::sort() {
  std::stable_sort(all_.begin(), all_.end(), [&](const auto& x, const auto& y) {
    return trials_.position(trials_[x.first].pivot) < trials_.position(trials_[y.first].pivot);
  });
}

}  // namespace opguard
