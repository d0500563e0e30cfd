// Three sources: the log (graphs, events, recomputations), the plan (boundaries, operators,
// kernels, coverage), and peak_bytes, which run_guarded() has written beside the log.
//
// A number that a run does not have is left out and not 0. Else `graph_breaks` of a program without
// torch.compile would be a record to be kept.
#include "session/canaries_now.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>

#include "align/pair/run.h"
#include "report/findings.h"
#include "session/compile_counts.h"

namespace opguard {
namespace {

std::string first_word(const std::string& path) {
  std::string word;
  std::ifstream(path) >> word;
  return word;
}

// Names only: how often an operator was dispatched depends on how far the trace went.
void add_names(const std::map<std::string, uint64_t>& counts, std::set<std::string>& names) {
  for (const auto& [name, count] : counts) names.insert(name);
}

}  // namespace

llvm::Expected<Canaries> canaries_of(const RecordedSide& side) {
  auto run = load_run(side.log);
  if (!run) return run.takeError();
  Canaries canaries;
  auto put = [&](const char* name, std::optional<uint64_t> value) {
    if (value) canaries.numbers[name] = *value;
  };
  const CompileCounts compiled = compile_counts(*run);
  put("graphs", compiled.graphs);
  put("graph_breaks", compiled.graph_breaks);
  put("recompiles", compiled.recompiles);
  uint64_t events = 0;
  for (const ProcessLog& log : run->processes) events += log.events.size();
  put("events", events);
  const Plan& plan = side.survey.plan;
  put("boundaries", plan.boundaries.size());
  if (plan.activities() > 0) put("coverage_permille", plan.attributed() * 1000 / plan.activities());
  put("recomputed_otherwise", check_single(*run).recompute.findings.size());
  const std::string peak = first_word(side.log.substr(0, side.log.rfind('/')) + "/peak_bytes");
  if (const uint64_t bytes = std::strtoull(peak.c_str(), nullptr, 10)) put("peak_bytes", bytes);
  std::set<std::string> operators, kernels;
  for (const Boundary& boundary : plan.boundaries) {
    add_names(boundary.activities, operators);
    add_names(boundary.backward, operators);
    add_names(boundary.kernels, kernels);
  }
  if (const std::set<std::string> tuned = tuned_kernels(*run); !tuned.empty())
    canaries.names["tuned"] = {tuned.begin(), tuned.end()};
  canaries.names["operators"] = {operators.begin(), operators.end()};
  canaries.names["kernels"] = {kernels.begin(), kernels.end()};
  return canaries;
}

}  // namespace opguard
