#include "session/compile_counts.h"

#include <cstdlib>

#include "llvm/ADT/StringExtras.h"

namespace opguard {

std::optional<uint64_t> sum_setting(const Run& run, const std::string& name) {
  std::optional<uint64_t> sum;
  for (const ProcessLog& log : run.processes)
    if (auto at = log.settings.find(name); at != log.settings.end())
      sum = sum.value_or(0) + std::strtoull(at->second.c_str(), nullptr, 10);
  return sum;
}

CompileCounts compile_counts(const Run& run) {
  return {sum_setting(run, "dynamo_graphs"), sum_setting(run, "dynamo_graph_breaks"),
          sum_setting(run, "dynamo_recompiles")};
}

std::set<std::string> tuned_kernels(const Run& run) {
  std::set<std::string> tuned;
  for (const ProcessLog& log : run.processes)
    for (const char* name : {"inductor_tuned", "triton_tuned"})
      if (auto at = log.settings.find(name); at != log.settings.end())
        for (llvm::StringRef one : llvm::split(at->second, "; "))
          if (!one.empty()) tuned.insert(one.str());
  return tuned;
}

}  // namespace opguard
