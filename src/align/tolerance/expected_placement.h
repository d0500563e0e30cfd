// align/tolerance/expected_placement.h: what the candidate's ranks would hold of a tensor if it
// were the reference's, of one that is not.
//
//   it is twice the reference's, sharded along 0        found: sharded along 0
//   layers.1's, and layers.0's is a partial sum         alike: a partial sum
//   of the reference's shape                            shape: replicated
//   half of it along 2; of all others that are cut      shape: sharded along 2, rank 0 the first
//   so rank 0 has the first half
//
// Counterexample: by its shape alone a part of a sum looks replicated. Who puts a value in by that
// must not hand it to what adds up. Two ways to hold such pieces, or rows of a folded batch, are no
// answer.
//
// The cost: one pass over what was compared, and a look at those alike for each that is asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "align/tolerance/comparison.h"

namespace opguard {

enum class PlacementSource : uint8_t {
  found,  // the tensor's own
  alike,  // of the same operator in another layer, micro-batch or step
  shape   // implied by the shapes alone
};

struct ExpectedPlacement {
  PlacementSource source = PlacementSource::found;
  PlacementKind kind = PlacementKind::unknown;
  SketchSetKind set = SketchSetKind::whole;
  uint8_t dim = 0;                 // of a set of halves
  std::vector<int64_t> local;      // what each rank has
  std::vector<HeldPieces> held{};  // of each of ComparedTensor::ranks
};

class ExpectedPlacements {
 public:
  ExpectedPlacements(const Run& reference, const Run& candidate, const Comparison& comparison);

  // Of one of comparison.tensors. None: it cannot be told, as of rows of a folded batch.
  std::optional<ExpectedPlacement> of(uint32_t tensor);

 private:
  using Form = std::tuple<uint32_t, uint32_t, uint32_t, std::string>;
  using Parts = std::vector<int64_t>;

  Form form_of(const ComparedTensor& tensor) const;
  // As the tensor itself was found, whatever its factor.
  std::optional<ExpectedPlacement> as_found(const ComparedTensor& tensor, PlacementSource source);
  std::optional<ExpectedPlacement> by_shape(const ComparedTensor& tensor);
  std::vector<int64_t> local_of(const ComparedTensor& tensor);

  const Comparison& comparison_;
  SketchReader a_, b_;
  std::map<Form, std::vector<uint32_t>> alike_;  // that are explained
  // By the ranks and into how many parts the dimensions are cut: which ranks have which pieces.
  using Held = std::vector<std::pair<uint32_t, uint32_t>>;
  std::map<std::pair<std::vector<int32_t>, Parts>, std::set<Held>> held_;
};

}  // namespace opguard
