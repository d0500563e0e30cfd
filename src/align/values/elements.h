// align/values/elements.h: what the optimizers of a step hold, as elements wherever they lie.
//
// Two runs may hold one model in other pieces. One has a list of tensors on every rank, the other a
// rank's share of one flat buffer, padded to a multiple of the ranks. Digests add up (digests.h),
// so
//
//   a   w1 + w2 + w3 on each of 2 ranks
//   b   piece 0 on rank 0, piece 1 (with 3 zeros behind it) on rank 1
//
// hold the same elements if the sum of a's list is that of b's pieces. Which ranks hold copies and
// which hold shares no log says. So three sums are made, and any of a's may be any of b's. One is
// of this rank alone, one of all ranks. In the third, of all ranks, what several hold under one
// name counts once.
//
// The sum says "the same elements, moved". That two parameters changed places it does not tell.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "align/judge/reason.h"
#include "align/values/model_sets.h"

namespace opguard {

struct ElementSum {
  bool known = true;  // every part has a digest, and no rule hides one
  uint64_t digest = 0;
  uint64_t elements = 0;  // with those of the padding
};

struct ElementSums {
  ElementSum own, all, distinct;  // of the three sums above
  std::set<std::string> dtypes;
  // Where every tensor has one element (a step's count for each parameter): their digests.
  std::set<uint64_t> scalars;
  bool only_scalars = true;
  bool empty() const { return all.elements == 0; }
};

struct StepElements {
  ElementSums before, after, gradients;
  std::map<std::string, ElementSums> states;  // by what they are: "exp_avg"
};

// "state:layers.0.weight.exp_avg" -> "exp_avg".
std::string state_key(const std::string& name);

// Are they the same elements? False too where it cannot be told.
bool same_elements(const ElementSums& a, const ElementSums& b);

// Are they known to be others? Only if before the step they were the same ones in these pieces, and
// in the same types. Another precision, a scale or a missing share is no difference of the runs.
bool other_elements(const StepElements& a, const StepElements& b);

// Why same_elements() is false.
Reason why_not(const ElementSums& a, const ElementSums& b);

class RunElements {
 public:
  explicit RunElements(const Run& run, const std::vector<ModelMoments>& moments)
      : run_(run), moments_(moments) {}

  // Of the k-th step of a process, and of the k-th of all others that ran beside it.
  StepElements of(int32_t process, size_t k);

 private:
  struct Sums {
    ElementSum all, distinct;
    std::set<std::string> dtypes;
    std::set<uint64_t> scalars;
    bool only_scalars = true;
  };
  using StepSums = std::map<std::string, Sums>;  // by list
  const StepSums& of_all(int32_t process, size_t k);

  const Run& run_;
  const std::vector<ModelMoments>& moments_;                // by process
  std::map<std::pair<uint32_t, size_t>, StepSums> of_all_;  // by ordinal and step
};

}  // namespace opguard
