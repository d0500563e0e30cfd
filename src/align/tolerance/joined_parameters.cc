// For each parameter without a partner, runs of the other side's unpaired ones are summed up.
//
//   fitting   q k v o up down      digests 3 5 7 2 9 1
//   qkv       digest 15            from q: 3, 8, 15: q k v
//
// Only what fits by its form is in the run, so biases between the weights do not break it. It is
// tried concatenated first (as many dimensions), then stacked (one more).
//
// Counterexample: digest 0 is that of zeros. Any zeros would be parts of it, so it has none.
//
// The cost: for each whole at most 64 additions from each of the fitting parameters.
#include "align/tolerance/joined_parameters.h"

#include <algorithm>
#include <utility>

namespace opguard {
namespace {

constexpr size_t kMostJoined = 64;  // weights in one

struct Held {
  Slot slot;
  std::vector<int64_t> shape;
  uint64_t elements = 1;
};

Held held_by(const PortSide& side, uint32_t number) {
  const SlotRef& at = side.tensors.tensors[number].at;
  const ProcessLog& log = side.run.processes[static_cast<size_t>(at.event.process)];
  Held held{log.slots[at.slot], {}, 1};
  if (held.slot.meta != kNone) held.shape = log.metas[held.slot.meta].shape;
  for (const int64_t n : held.shape) held.elements *= static_cast<uint64_t>(n);
  return held;
}

// Weights are joined with weights, biases with biases; or they are stacked. One alone may have
// another form, as a convolution's kernel that is a matrix.
bool fits(const Held& part, const Held& whole, bool stacked) {
  if (part.elements == whole.elements) return true;
  if (!stacked) return part.shape.size() == whole.shape.size();
  return part.shape.size() + 1 == whole.shape.size() &&
         std::equal(part.shape.begin(), part.shape.end(), whole.shape.begin() + 1);
}

// Of these, one after the other, those that have a digest together. Empty: there are none.
std::vector<uint32_t> summing_up(uint64_t digest, const std::vector<uint32_t>& parts,
                                 const PortSide& side) {
  for (size_t first = 0; first < parts.size(); ++first) {
    uint64_t sum = 0;
    for (size_t last = first; last < std::min(parts.size(), first + kMostJoined); ++last)
      if ((sum += held_by(side, parts[last]).slot.digest) == digest)
        return {parts.begin() + static_cast<ptrdiff_t>(first),
                parts.begin() + static_cast<ptrdiff_t>(last) + 1};
  }
  return {};
}

}  // namespace

std::vector<JoinedParameter> joined_parameters(const PortParameters& one,
                                               const PortParameters& several) {
  std::vector<JoinedParameter> found;
  for (const uint32_t number : one.numbers) {
    const Held whole = held_by(one.side, number);
    if (one.used.contains(number) || !whole.slot.has_digest || whole.slot.digest == 0) continue;
    for (const bool stacked : {false, true}) {
      std::vector<uint32_t> fitting;
      for (const uint32_t part : several.numbers)
        if (!several.used.contains(part) && fits(held_by(several.side, part), whole, stacked))
          fitting.push_back(part);
      std::vector<uint32_t> parts = summing_up(whole.slot.digest, fitting, several.side);
      if (parts.empty()) continue;
      one.used.insert(number);
      several.used.insert(parts.begin(), parts.end());
      found.push_back({number, std::move(parts)});
      break;
    }
  }
  return found;
}

}  // namespace opguard
