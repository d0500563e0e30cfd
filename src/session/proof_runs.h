// session/proof_runs.h: the further runs of a proof, within their budget: docs/design/proof.md.
//
// Run a is made again once, with the tensors written that may be put into b. Then b is made again
// with some of them in place, as it is, or a with values of b's in place.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "align/pair/timeline.h"
#include "confirm/proof.h"
#include "session/rerun.h"
#include "session/side.h"

namespace opguard {

// A further run, or why there is none.
struct FurtherRun {
  std::optional<Run> run;
  ProofReason why{};
};

class ProofRuns {
 public:
  // a, b: how the programs are run. The timeline, of both runs, must stay.
  ProofRuns(const GuardedProgram& a, const GuardedProgram& b, const Timeline& timeline,
            uint32_t budget);

  uint32_t left() const { return left_; }
  uint32_t made() const { return made_; }
  // The step as Timeline::step counts. cut: from now on each run ends when it is over.
  void judge_step(uint32_t step, bool cut) {
    step_ = step;
    cut_ = cut;
  }

  // That step as a side counts its own; the latest, where its programs differ.
  uint32_t last_step(int side) const;

  // A selection of one of a side's events. slot: "out", or "" for all of it; "" if it has none.
  std::string line_of(int side, const EventRef& event, const std::string& slot = "") const;

  // Runs a again with these events' tensors written, a line each. None, or why not.
  ProofReason write_a(const std::set<std::string>& lines);
  // Why run a's value cannot be put in place: its re-run made another (unrepeated), or did not
  // write it. None if it can.
  ProofReason missing(const Put& put) const;

  // Whether run a's model values came out as they were when it was made again.
  bool a_repeats() const;

  // Runs b with values of a's in place. written: b's own tensors, before they are replaced.
  FurtherRun force(const Experiment& experiment, const std::set<std::string>& written);
  // Runs b once more as it is.
  llvm::Expected<Run> repeat();
  // Runs a with the values in place that b wrote in the latest force() that asked for some: the
  // experiment the other way round.
  llvm::Expected<Run> leave_out(const Experiment& experiment);

  // The tensors of both runs at a candidate that are not the same, byte by byte.
  std::vector<Difference> compare_bytes(const Pivot& candidate) const;

 private:
  const Run& run(int side) const { return timeline_.run(side); }
  llvm::Expected<Run> make(int side, const Selections& selections);

  // Of a and b: with their hook, so with the probes of the first run.
  const GuardedProgram* programs_[2];
  const Timeline& timeline_;
  uint32_t left_, made_ = 0;
  uint32_t step_ = kNone;
  bool cut_ = false;
  // Of write_a(). `repeated_a_` refers to it.
  Run again_a_;
  std::unique_ptr<Again> repeated_a_;
  Captures captures_[2];
};

}  // namespace opguard
