// align/tolerance/missed_update.h: what updates the other parameters, where one was left as it was.
//
//   optimizer = AdamW([p for p in model.parameters() if p.dim() > 1])
//   optimizer.step()        writes every matrix; a norm's gain keeps the value that it began with
//
// The value was right when it was made, so its maker is not at fault. What writes the others
// between the two times that the program read it, is to write this one too.
//
//   p.view(-1)[: part.numel()].copy_(part)      writes some elements, and the others stay
//
// What writes a part of a parameter alone is named likewise.
//
// Not named: anything where the whole parameter was written since the step began, or no other was.
//
// The cost: one index of the candidate's writes.
#pragma once

#include "align/tolerance/comparison.h"

namespace opguard {

struct MissedUpdate {
  EventRef event;     // no event: nothing is named
  bool part = false;  // of this parameter it writes a part
};

// `maker`: what made the value of the parameter.
MissedUpdate missed_update(const Run& candidate, const Comparison& comparison,
                           const ComparedTensor& parameter, const EventRef& maker);

}  // namespace opguard
