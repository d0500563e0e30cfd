// align/pair/run_digest.h: one number for a run, of the digests of its ranks' steps.
//
//   rank 0    40 steps    6,640 records    9f31c0de77ab5d02
//   rank 1    40 steps    6,640 records    0c4e88d1a95f1b33
//   the run                                3f2a9c41d07be655     a sum over its ranks
//
// Two runs of one digest have equal records, but by a chance of some 2^-64. So who cannot have the
// other's logs can be told the number. The same of the first n steps, which says where they part in
// 17 numbers of 100,000 steps.
//
// Counterexample: the same records in other files, as of a run that was begun once more. Each log
// of a rank counts by its place.
// The cost: one read of each index, and the logarithm of its steps where they are not all meant.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "record/bring.h"
#include "record/event.h"

namespace opguard {

struct RankDigest {
  int32_t rank = 0;
  uint32_t place = 0;  // among the logs of its rank
  uint64_t steps = 0, records = 0;
  uint64_t digest = 0;  // the chain of these steps; generators' states that moved take part
  // Else it is being written, or its process was killed: of the last steps nothing is told, nor
  // whether records were lost.
  bool closed = true;
  bool operator==(const RankDigest&) const = default;
};

struct RunDigest {
  std::vector<RankDigest> ranks;
  uint64_t digest = 0;
  bool operator==(const RunDigest&) const = default;
};

// Of the steps up to this one, with it; kNone: of all. Error: a log has no index, has lost records,
// or its index cannot be read. bring: nullptr, or of a folder that lies elsewhere.
llvm::Expected<RunDigest> run_digest(const std::string& dir, uint32_t last_step,
                                     const Bring* bring = nullptr);

// As the name of a log's file says; 0 where it does not.
int32_t rank_of_log(const std::string& path);

}  // namespace opguard
