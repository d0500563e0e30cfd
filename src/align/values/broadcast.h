// align/values/broadcast.h: values that are another value repeated along dimensions of size one.
//
// One release expands a mask or a table of positions over the batch before it computes on it, the
// next leaves that to broadcasting. og1's h of a repeated value follows from the single one's, so
// records alone tell.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "record/record.h"

namespace opguard {

// What h is multiplied with when a value of shape `from` is repeated to shape `to` (dimensions
// aligned at the last, missing ones are of size 1). 0: `to` is no repetition, or one whose h does
// not follow, as the last dimension is repeated.
uint64_t repetition_factor(const std::vector<int64_t>& from, const std::vector<int64_t>& to);

// The values of one run, as another run asks for them.
class Broadcasts {
 public:
  Broadcasts(const Run& held, const Run& asking);

  // Does the run hold a value that this one repeats, or a repetition of this one?
  bool holds(const Meta& meta, uint64_t h) const;

 private:
  using Type = std::pair<std::string, std::vector<int64_t>>;  // dtype, shape without leading ones
  std::map<Type, std::vector<uint64_t>> values_;              // h, sorted
  // h of all values of one type once repeated to a shape.
  mutable std::map<std::pair<Type, std::vector<int64_t>>, std::unordered_set<uint64_t>> repeated_;
};

}  // namespace opguard
