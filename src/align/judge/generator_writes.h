// align/judge/generator_writes.h: who moved a generator of random numbers in one run only.
//
// A generator is an input that no call names. Where an operator draws other numbers from equal
// inputs, the cause is what wrote the generator's state:
//
//   a   torch.manual_seed(100 + step)       F.dropout(h, 0.2)
//   b   torch.manual_seed(100 + 2 * step)   F.dropout(h, 0.2)   <- only here something differs
#pragma once

#include <optional>

#include "align/judge/evidence.h"

namespace opguard {

// Two events of one boundary, or one event of one run alone (the other's process is -1).
struct GeneratorWrite {
  EventRef refs[2];
};

// The first event that moves a generator otherwise: it seeds it with something else, draws another
// shape, or is in one run only. Looked at is what ran since the states last agreed and before the
// first record that differs. Only what ran before a and b counts, a pair of events of one process.
// `generator` is as in a state's record, "torch.cpu". If it is "", the first that differs of those
// that torch's operators draw from. Nothing where the states are not known, or agreed to the end.
// Cost: the events since the last record that agrees.
std::optional<GeneratorWrite> generator_write(const Evidence& evidence, const EventRef& a,
                                              const EventRef& b, const std::string& generator = "");

}  // namespace opguard
