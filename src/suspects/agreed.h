// suspects/agreed.h: which statements of a hunk were measured, and left what the other run has.
//
//   a  y = x.permute(2, 0, 1).unsqueeze(0)
//   b  y = torch.unsqueeze(x.permute(2, 0, 1), 0)     left equal values: what this statement
//                                                     computes is not where the runs part
//   b  is_causal=config.is_decoder,                   leaves nothing that is recorded: not measured
//   b  DataLoader(randn(8), batch_size=1)             nor is a call that is no recorded operator,
//                                                     whatever randn() left
//
// A hint, as all that is read of two texts. A statement may do more than its operators leave (two
// names for one tensor, an attribute of a module). Cost: one pass over the events before the
// candidate; where a hunk has operators of one run alone, one over the other run's slots.
#pragma once

#include <array>
#include <vector>

#include "align/judge/verdict.h"
#include "align/pair/alignment.h"
#include "suspects/programs.h"

namespace opguard {

using HunkStatements = std::array<std::vector<HunkStatement>, 2>;

// Of each hunk, its statements.
std::vector<HunkStatements> find_agreed(const Programs& programs, const Alignment& alignment,
                                        const Pivot& pivot, const std::vector<Hunk>& hunks);

}  // namespace opguard
