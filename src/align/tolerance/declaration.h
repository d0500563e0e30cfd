// align/tolerance/declaration.h: what a library declares of how ranks hold a tensor, beside what
// they hold.
//
//   declared, as a log has it                        the ranks hold                   that is
//   Shard(0) over 2 ranks 0-1                        the upper and the lower half     as found
//   Replicate() over 2 ranks 0-1                     parts of a sum                   otherwise
//   Shard(0) over 2 ranks 0-1                        the left and the right half      otherwise
//   Shard(0) over 2 ranks 0-1                        rows 0-1 and 6-7, rows 2-5       as found
//   Replicate() over 2 ranks 0-1                     each the same, of nobody's       untold
//
// The declaration is one more hypothesis: its sums and pieces are compared with the reference's.
// So what is ambiguous agrees with all that it may be. It is `otherwise` where it does not fit and
// what the ranks hold is known to be something else. Ranks that ought to hold the same and do not
// contradict it as well, whatever they hold.
//
// A mesh need not be all of the ranks. Of two meshes each may have another part of the batch, or of
// a sum. What is cut or added up beyond the declaration is free. So is the order of two pieces in a
// rank: Megatron's gate and projection, and zigzag context parallelism, are declared as shards.
//
// Counterexample: a factor. Twice what is declared is laid out as declared; `scale` tells it.
//
// The cost: a distance for each rank and each part of the tensor that a mesh may have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "align/tolerance/placement.h"

namespace opguard {

enum class DeclaredKind : uint8_t {
  replicate,
  shard,
  partial,
  partial_mean,
  other  // of a kind that sums and pieces do not tell, as a maximum
};

// Along one dimension of a mesh.
struct DeclaredAlong {
  DeclaredKind kind = DeclaredKind::other;
  int32_t dim = 0;     // of the tensor, that is cut; from its end below 0
  uint32_t split = 1;  // it is cut into so many first, by dimensions of the mesh that come later
  bool operator==(const DeclaredAlong&) const = default;
};

struct Declaration {
  std::vector<DeclaredAlong> along{};
  // Empty where it is not declared which ranks those are: then there is one of `along`.
  std::vector<uint32_t> mesh{};
  std::vector<uint32_t> ranks{};  // in the mesh's order, the last dimension fastest
  std::string text{};             // "Shard(0) over ranks 0-1", "sequence_parallel over ranks 0-1"
  bool by_attributes = false;     // Megatron's, of a parameter
  bool operator==(const Declaration&) const = default;
};

// Of the text that python/opguard/record/declared.py makes; none where it is no such text.
std::optional<Declaration> parse_declaration(std::string_view text);

enum class DeclaredState : uint8_t { as_found, otherwise, untold };

// declared: of each of `held`. found: what find_placement() said of these.
DeclaredState check_declaration(const WholeValue& whole, const std::vector<RankValue>& held,
                                const std::vector<Declaration>& declared,
                                const TensorPlacement& found, double allowed, double unit = 1);

}  // namespace opguard
