// align/pair/sequence.h: which entries of two event sequences are the same boundary, whatever was
// inserted, left out or moved between them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace opguard {

// What alignment looks at in one event. The 64-bit digests stand for text and fingerprints, and
// only steer the pairing. What a pair is said to be is decided on the events themselves.
struct Token {
  uint64_t key = 0;      // boundary, kind, phase, node: tokens with other keys never pair
  uint64_t content = 0;  // inputs, scalars, outputs
  uint64_t inputs = 0;   // fingerprints read; 0: none
  uint64_t shapes = 0;   // kinds, dtypes and shapes of all slots
  uint64_t scalars = 0;
  uint32_t step = 0, micro_batch = 0, occurrence = 0;
};

inline constexpr int kMaxScore = 17;

// 0: never a pair. Equal content > equal inputs > same shapes > the key alone; the occurrence
// decides between candidates of the same rank.
inline int pair_score(const Token& a, const Token& b) {
  if (a.key != b.key) return 0;
  const int place = a.step == b.step && a.occurrence == b.occurrence ? 1 : 0;
  if (a.content == b.content && a.step == b.step) return 16 + place;
  // Another step is another execution, however alike.
  int score = a.step == b.step ? 4 : 2;
  if (a.inputs == b.inputs && a.inputs != 0) score += 5;
  if (a.shapes == b.shapes) score += 2;
  if (a.scalars == b.scalars) score += 1;
  return score + place;
}

struct Limits {
  // Windows up to this many cells are solved exactly and without anchors.
  uint64_t exact_cells = 1 << 16;
  // Above this a window's DP is kept to a band around its diagonal; one byte a cell.
  uint64_t max_cells = 1 << 26;
  // Where at most so many cells of a window could be pairs, only those are looked at: no band is
  // needed; 20 bytes each.
  uint64_t sparse_cells = 1 << 22;
};

// (position in a, position in b), both strictly increasing, of the largest total score that anchors
// (content unique on both sides) leave possible.
using Matches = std::vector<std::pair<uint32_t, uint32_t>>;
Matches align_sequences(const std::vector<Token>& a, const std::vector<Token>& b,
                        const Limits& limits = {});

}  // namespace opguard
