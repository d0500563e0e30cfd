// session/compile_counts.h: what torch.compile did in a run, as its logs' headers say.
//
//   rank 0   dynamo_graphs=3  dynamo_graph_breaks=1     graphs 6, graph_breaks 1, recompiles none
//   rank 1   dynamo_graphs=3
//
// Counterexample: a program without torch.compile. Nothing is not 0: a number that no log has is
// not compared.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "record/record.h"
#include "report/verification.h"

namespace opguard {

// Of a number in the headers, over all processes; nothing where no log has it.
std::optional<uint64_t> sum_setting(const Run& run, const std::string& name);

CompileCounts compile_counts(const Run& run);

// What tuners have chosen, of all processes: "matmul=BLOCK_M:64,num_warps:4".
std::set<std::string> tuned_kernels(const Run& run);

}  // namespace opguard
