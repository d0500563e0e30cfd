// The order of the runs is the order of what each must know. The candidate knows nothing and runs
// first. The reference then sketches the pieces that the candidate's ranks hold. What is padded can
// be told by both shapes only, so a padded candidate is run once more.
//
//   run_a/slices.txt    world 2, shape 8 64, ...       for the reference
//   run_a/pads.txt      pad 103 26                     for the candidate, once more
//   run_a/types.txt     type model.linear:3nly bfloat16    for the jittered runs of the reference
//
// Counterexample: a run that fails. Elsewhere half of a run is compared as far as it came;
// distances need the whole of each.
#include "session/tolerance.h"

#include "align/pair/run.h"
#include "session/slices.h"
#include "support/say.h"
#include "support/write_file.h"

namespace opguard {
namespace {

constexpr const char* kMode = "OPGUARD_MODE";

// What is added behind takes the place of what stood before.
GuardedProgram sketching(GuardedProgram program, const Variables& more) {
  program.environment.push_back({kMode, "sketch"});
  program.environment.insert(program.environment.end(), more.begin(), more.end());
  return program;
}

// Where the candidate's vocabulary is padded, its pad may be anything that has no effect. Only once
// the reference has run it is known what is pad.
llvm::Error record_padded(const GuardedProgram& a, const GuardedProgram& b, const Run& candidate,
                          const RecordSketched& record_b, ToleranceLogs& logs) {
  auto reference = load_run(logs.a);
  if (!reference) return reference.takeError();
  const std::string pads = pads_of(*reference, candidate);
  if (pads.empty()) return llvm::Error::success();
  logs.pads = a.work + "/pads.txt";
  if (auto error = write_file(logs.pads, pads)) return error;
  say_step("guarded run of b, sketched without what is padded");
  constexpr const char* kFolder = "unpadded";
  if (auto error = record_b(sketching(b, {{"OPGUARD_SLICES", "@" + logs.pads}}), kFolder))
    return error;
  logs.b = b.work + "/" + kFolder + "/log";
  return llvm::Error::success();
}

}  // namespace

llvm::Expected<ToleranceLogs> record_tolerance(const ToleranceRuns& runs, const GuardedProgram& a,
                                               const GuardedProgram& b,
                                               const RecordSketched& record_a,
                                               const RecordSketched& record_b) {
  ToleranceLogs logs{a.work + "/log", b.work + "/log", {}, ""};
  const std::string total = std::to_string(4 + runs.perturb);
  say_step("3/" + total + " guarded run of b, sketched");
  if (auto error = record_b(sketching(b, {}), "")) return error;
  auto candidate = load_run(logs.b);
  if (!candidate) return candidate.takeError();
  const std::string slices = a.work + "/slices.txt";
  if (auto error = write_file(slices, slices_of(*candidate, runs.port))) return error;
  const std::string of_types = types_of(*candidate), types = a.work + "/types.txt";
  const bool coarse = !of_types.empty();
  if (coarse)
    if (auto error = write_file(types, of_types)) return error;
  say_step("4/" + total + " guarded run of a, sketched");
  if (auto error = record_a(sketching(a, {{"OPGUARD_SLICES", "@" + slices}}), "")) return error;
  if (auto error = record_padded(a, b, *candidate, record_b, logs)) return error;
  for (uint32_t i = 1; i <= runs.perturb; ++i) {
    const std::string seed = std::to_string(runs.seed + i), folder = "noise_" + std::to_string(i);
    say_step(std::to_string(4 + i) + "/" + total + " guarded run of a, rounding jittered by seed " +
             seed);
    // Pieces of what jitter makes are asked for by nobody, but it has to be as coarse as b rounds.
    Variables settings{{"OPGUARD_JITTER", seed}};
    if (coarse) settings.emplace_back("OPGUARD_SLICES", "@" + types);
    if (auto error = record_a(sketching(a, settings), folder)) return error;
    logs.noise.push_back(a.work + "/" + folder + "/log");
  }
  return logs;
}

}  // namespace opguard
