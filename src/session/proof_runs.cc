// A value goes from one run into the other by a line of text. It says which slot gets it, which
// file holds it, and its name there.
//
//   softmax:q7k2@3:out/out0=/w/run_a/proof_1/log/tensors-rank0-...safetensors#out/out0
//
// The event is named for run b (selection_of), the file is found by the event of run a (Captures).
// The alignment pairs the two. Where one of the three has no answer nothing is put, and the reason
// is told (ProofReason).
//
// Counterexample: a value of run a that its re-run made otherwise. It is no value of run a, and
// nothing could be proven by it (missing).
//
// The cost: one run of a program each for write_a(), force(), repeat() and leave_out().
#include "session/proof_runs.h"

#include <algorithm>

#include "align/pair/run.h"
#include "align/pair/slot_pairs.h"
#include "support/diagnostics.h"
#include "tensor/safetensors.h"

namespace opguard {
namespace {

std::string joined(const std::set<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace

ProofRuns::ProofRuns(const GuardedProgram& a, const GuardedProgram& b, const Timeline& timeline,
                     uint32_t budget)
    : programs_{&a, &b}, timeline_(timeline), left_(budget) {}

// One line of OPGUARD_CAPTURE; "" for an event whose name no selection can hold.
std::string ProofRuns::line_of(int side, const EventRef& event, const std::string& slot) const {
  const std::string line = selection_of(run(side), event, slot);
  return line.empty() ? "" : line + "\n";
}

// Processes of a side may have begun at other steps: the latest one ends the run for all.
uint32_t ProofRuns::last_step(int side) const {
  uint32_t last = 0;
  for (size_t p = 0; p < run(side).processes.size(); ++p)
    last = std::max(last, timeline_.steps(side, int32_t(p)).step(side, step_));
  return last;
}

// The one place where a run is spent. It is spent whether or not it comes to an end.
llvm::Expected<Run> ProofRuns::make(int side, const Selections& selections) {
  --left_;
  ++made_;
  auto log = run_again(*programs_[side], {"proof_" + std::to_string(made_), selections,
                                          cut_ ? last_step(side) : kNone, patience_s(run(side))});
  if (!log) return log.takeError();
  auto again = load_run(*log);
  if (!again) return again.takeError();
  // The places of the boundaries are those of the run.
  for (ProcessLog& process : again->processes)
    for (const ProcessLog& before : run(side).processes)
      for (const auto& [boundary, location] : before.locations)
        process.locations[boundary] = location;
  return std::move(*again);
}

ProofReason ProofRuns::write_a(const std::set<std::string>& lines) {
  auto again = make(0, {{"OPGUARD_CAPTURE", joined(lines)}});
  if (!again)
    return {.kind = ProofReasonKind::capture_failed, .error = first_line(again.takeError())};
  again_a_ = std::move(*again);
  captures_[0].read(again_a_.dir, again_a_);
  repeated_a_ = std::make_unique<Again>(again_a_);
  return {};
}

// Both must hold: the re-run left at this event what the run had left, and it wrote a file of it.
ProofReason ProofRuns::missing(const Put& put) const {
  const Repeat repeat = repeated_a_->repeats(run(0), put.a);
  if (repeat != Repeat::same)
    return {.kind = ProofReasonKind::unrepeated, .event = put.a, .repeat = repeat};
  if (captures_[0].of(run(0), put.a).empty()) return {.kind = ProofReasonKind::unwritten};
  return {};
}

bool ProofRuns::a_repeats() const { return !first_changed(run(0), again_a_, last_step(0), cut_); }

// All puts or none: with one of them missing the run would answer another question.
FurtherRun ProofRuns::force(const Experiment& experiment, const std::set<std::string>& written) {
  std::string puts;
  for (const Put& put : experiment.puts) {
    if (ProofReason why = missing(put)) return {{}, why};
    const ProcessLog &la = run(0).processes[put.a.process], &lb = run(1).processes[put.b.process];
    const std::string selection =
        selection_of(run(1), put.b, tensor_name(lb, lb.slots[put.slot_b]));
    if (selection.empty()) return {{}, {.kind = ProofReasonKind::unnamed}};
    puts += selection + "=" + captures_[0].of(run(0), put.a) + "#" +
            tensor_name(la, la.slots[put.slot_a]) + "\n";
  }
  auto again = make(1, {{"OPGUARD_TRANSPLANT", puts}, {"OPGUARD_CAPTURE", joined(written)}});
  if (!again)
    return {{}, {.kind = ProofReasonKind::force_failed, .error = first_line(again.takeError())}};
  if (!written.empty()) {
    captures_[1] = Captures();
    captures_[1].read(again->dir, *again);
  }
  return {std::move(*again)};
}

llvm::Expected<Run> ProofRuns::repeat() { return make(1, {}); }

// The other way round: the file is of run b, and the slot of run a. So b's captures must be of
// force().
llvm::Expected<Run> ProofRuns::leave_out(const Experiment& experiment) {
  std::string puts;
  for (const Put& put : experiment.puts) {
    const ProcessLog &la = run(0).processes[put.a.process], &lb = run(1).processes[put.b.process];
    const std::string file = captures_[1].of(run(1), put.b);
    const std::string selection =
        selection_of(run(0), put.a, tensor_name(la, la.slots[put.slot_a]));
    if (file.empty() || selection.empty()) return make_error("run b's value was not written");
    puts += selection + "=" + file + "#" + tensor_name(lb, lb.slots[put.slot_b]) + "\n";
  }
  return make(0, {{"OPGUARD_TRANSPLANT", puts}});
}

// Empty where one side was not captured, or where no tensor differs.
std::vector<Difference> ProofRuns::compare_bytes(const Pivot& candidate) const {
  std::vector<Difference> all;
  if (candidate.a.process < 0 || candidate.b.process < 0) return all;
  SafetensorsFile a, b;
  std::string error;
  const std::string path_a = captures_[0].of(run(0), candidate.a),
                    path_b = captures_[1].of(run(1), candidate.b);
  if (path_a.empty() || path_b.empty() || !a.open(path_a, error) || !b.open(path_b, error))
    return all;
  const ProcessLog &la = timeline_.log(0, candidate.a), &lb = timeline_.log(1, candidate.b);
  for (const SlotPair& pair :
       pair_slots(la, la.events[candidate.a.event], lb, lb.events[candidate.b.event])) {
    if (!pair.a || !pair.b) continue;
    const Tensor *x = a.find(tensor_name(la, *pair.a)), *y = b.find(tensor_name(lb, *pair.b));
    if (!x || !y) continue;
    Difference difference = compare_tensors(*x, *y);
    difference.name = tensor_name(lb, *pair.b);
    if (!difference.equal) all.push_back(std::move(difference));
  }
  return all;
}

}  // namespace opguard
