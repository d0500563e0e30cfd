// What is special of the runs: a value of the reference is whole, and a rank of the candidate holds
// a piece of it. So each value is cut as its placement says, and every rank gets a file of its own.
//
//   reference, out0 [8, 64]          run a again: one file
//   candidate, tp 2, rank 0 and 1    put/0.safetensors [8, 32], put/1.safetensors [8, 32]
//
// judge_isolation() is told by number which transplant belongs to which put. A put that was left
// out has no number (IsolatedRun::kUnasked), and why is counted (NotPut).
//
// Counterexample: a candidate that does not repeat itself. Where an event came out otherwise before
// any value was put in, no fault is proven.
#include "session/isolate.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "align/pair/run.h"
#include "confirm/confirm.h"
#include "confirm/experiment.h"
#include "confirm/isolation.h"
#include "session/rerun.h"
#include "support/diagnostics.h"
#include "support/say.h"
#include "support/text.h"
#include "tensor/safetensors.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

const std::string kIsolate = "isolate: ";

// The comparison is within rounding: the runs need sketches, as those of --tolerance have.
GuardedProgram in_mode_sketch(GuardedProgram program) {
  program.environment.push_back({"OPGUARD_MODE", "sketch"});
  return program;
}

// The places of the boundaries are those of the run before.
llvm::Expected<Run> read_again(const std::string& log, const Run& before) {
  auto again = load_run(log);
  if (!again) return again.takeError();
  for (ProcessLog& process : again->processes)
    for (const ProcessLog& known : before.processes)
      for (const auto& [boundary, location] : known.locations)
        process.locations[boundary] = location;
  return std::move(*again);
}

class Isolator {
 public:
  Isolator(const GuardedProgram& a, const GuardedProgram& b, const ToleranceOptions& tolerance,
           const Run& run_a, const Run& run_b)
      : programs_{in_mode_sketch(a), in_mode_sketch(b)},
        tolerance_(tolerance),
        a_(run_a),
        b_(run_b) {}

  // The second comparison is with run a as it was recorded first, not with its re-run.
  Examined run(const std::vector<Run>& noise, const Comparison& comparison, Verdict& verdict) {
    plan_ = plan_isolation(a_, b_, comparison);
    if (plan_.puts.empty()) {
      Isolation nothing;
      nothing.not_put = plan_.not_put;
      return unproven({ProofReasonKind::nothing_to_put}, verdict, std::move(nothing));
    }
    if (ProofReason why = write_a()) return unproven(why, verdict);
    auto lines = cut_values();
    if (!lines) return unproven(failed(ProofReasonKind::force_failed, lines.takeError()), verdict);
    if (lines->empty()) return unproven({ProofReasonKind::nothing_to_put}, verdict);
    say(kIsolate + "run of b with " + counted(asked_, "value") + " of a in place");
    auto again = make(1, "isolated", {{"OPGUARD_TRANSPLANT", *lines}});
    if (!again) return unproven(failed(ProofReasonKind::force_failed, again.takeError()), verdict);
    const Comparison compared = compare_tensors(a_, *again, noise, tolerance_);
    const Pivot named = verdict.candidates.empty() ? Pivot{} : verdict.candidates.front();
    Isolation found = judge_isolation(a_, b_, comparison, plan_, {*again, compared, lines_}, named);
    return judged(std::move(found), verdict);
  }

 private:
  static ProofReason failed(ProofReasonKind kind, llvm::Error error) {
    return {.kind = kind, .error = first_line(std::move(error))};
  }

  llvm::Expected<Run> make(int side, const std::string& folder, const Selections& selections) {
    ++made_;
    const Run& before = side == 0 ? a_ : b_;
    auto log =
        run_again(programs_[side], {folder, selections, plan_.last_step, patience_s(before)});
    if (!log) return log.takeError();
    return read_again(*log, before);
  }

  // Per operator and kind of slot one selection, though several of its results may be wanted.
  ProofReason write_a() {
    std::set<std::string> lines;
    for (const IsolatingPut& put : plan_.puts) {
      const ProcessLog& log = a_.processes[static_cast<size_t>(put.a.event.process)];
      const std::string name = tensor_name(log, log.slots[put.a.slot]);
      const std::string line = selection_of(a_, put.a.event, name.substr(0, name.find('/')));
      if (!line.empty()) lines.insert(line + "\n");
    }
    std::string text;
    for (const std::string& line : lines) text += line;
    say(kIsolate + "run of a with the tensors of " + counted(lines.size(), "operator") +
        " written");
    auto again = make(0, "isolated", {{"OPGUARD_CAPTURE", text}});
    if (!again) return failed(ProofReasonKind::capture_failed, again.takeError());
    again_a_ = std::move(*again);
    captures_.read(again_a_.dir, again_a_);
    return {};
  }

  void leave_out(NotPut why) { ++plan_.not_put[static_cast<size_t>(why)]; }

  // Writes each rank's values. The transplants, a line each.
  llvm::Expected<std::string> cut_values() {
    const std::string folder = programs_[1].work + "/isolated/put";
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) return make_error("cannot make '" + folder + "': " + error.message());
    const Again repeated(again_a_);
    std::string lines;
    lines_.assign(plan_.puts.size(), IsolatedRun::kUnasked);
    std::map<std::string, SafetensorsFile> files;
    for (size_t i = 0; i < plan_.puts.size(); ++i) {
      const IsolatingPut& put = plan_.puts[i];
      const ProcessLog &la = a_.processes[static_cast<size_t>(put.a.event.process)],
                       &lb = b_.processes[static_cast<size_t>(put.b.event.process)];
      const std::string path = captures_.of(a_, put.a.event);
      if (path.empty() || repeated.repeats(a_, put.a.event) != Repeat::same) {
        leave_out(NotPut::unrepeated);
        continue;
      }
      SafetensorsFile& file = files[path];
      std::string why;
      if (file.tensors().empty()) file.open(path, why);
      const Tensor* whole = file.named(tensor_name(la, la.slots[put.a.slot]));
      if (whole == nullptr) {
        leave_out(NotPut::unrepeated);
        continue;
      }
      const Slot read = lb.slots[put.b.slot];
      const Meta& meta = lb.metas[read.meta];
      const Dtype* type = dtype_named(meta.dtype);
      const auto bytes = type == nullptr ? std::nullopt : cut_tensor(*whole, put.cut, *type);
      if (!bytes) {
        leave_out(NotPut::other_elements);
        continue;
      }
      const std::string to = folder + "/" + std::to_string(i) + ".safetensors";
      if (!write_safetensors(to, {{"value", type, meta.shape, bytes->data()}}, {}, why))
        return make_error(why);
      lines += selection_of(b_, put.b.event, tensor_name(lb, read)) + "=" + to + "#value\n";
      lines_[i] = asked_++;
    }
    return lines;
  }

  // Nothing was put in place: the candidates stay as the comparison has named them.
  static Examined unproven(const ProofReason& why, Verdict& verdict, Isolation isolation = {}) {
    Examined examined;
    examined.isolation = std::move(isolation);
    ProofReport proof;
    proof.state = verdict.candidates.empty() ? ProofState::none : ProofState::indicated;
    proof.why = why;
    examined.proof = std::move(proof);
    return examined;
  }

  // The faults come first among the candidates, in their order.
  Examined judged(Isolation found, Verdict& verdict) const {
    ProofReport proof;
    proof.runs = made_;
    Examined examined;
    std::vector<Pivot> candidates;
    bool all = !found.faults.empty();
    for (const IndependentFault& fault : found.faults) {
      all &= fault.proven;
      if (candidates.size() == kMostCandidates) continue;
      Confirmation said;
      if (fault.proven) said.causal = true;
      said.why.kind = fault.proven ? ProofReasonKind::isolated : ProofReasonKind::isolated_unknown;
      said.why.executions = fault.unknown;
      proof.causes.push_back({candidates.size(),
                              fault.proven ? ProofState::proven : ProofState::indicated,
                              /*measured=*/true, Need::unasked});
      candidates.push_back(fault.pivot);
      examined.confirmations.push_back(std::move(said));
    }
    if (proof.causes.size() == 1) proof.causes.front().need = Need::only;
    if (!candidates.empty()) {
      proof.why = examined.confirmations.front().why;
      verdict.candidates = std::move(candidates);
    } else {
      proof.why = {ProofReasonKind::nothing_isolated};
    }
    if (found.unrepeated.process >= 0) {
      proof.why = {.kind = ProofReasonKind::hindered,
                   .outcomes = {.obstacle = {Hindrance::other_value_before, found.unrepeated}}};
      for (Confirmation& said : examined.confirmations) said.why = proof.why;
    }
    proof.state = all                          ? ProofState::proven
                  : verdict.candidates.empty() ? ProofState::none
                                               : ProofState::indicated;
    if (!all && !found.faults.empty() && found.unrepeated.process < 0)
      for (const Confirmation& said : examined.confirmations)
        if (!said.causal) {
          proof.why = said.why;
          break;
        }
    examined.proof = std::move(proof);
    examined.isolation = std::move(found);
    return examined;
  }

  const GuardedProgram programs_[2];
  const ToleranceOptions& tolerance_;
  const Run& a_;
  const Run& b_;
  IsolationPlan plan_;
  Run again_a_;
  Captures captures_;
  std::vector<size_t> lines_;  // of each of plan_.puts
  size_t asked_ = 0;
  uint32_t made_ = 0;
};

}  // namespace

Isolate isolate_with(const GuardedProgram& a, const GuardedProgram& b,
                     const ToleranceOptions& tolerance) {
  return [&a, &b, &tolerance](const Run& run_a, const Run& run_b, const std::vector<Run>& noise,
                              const Comparison& comparison, Verdict& verdict) {
    return Isolator(a, b, tolerance, run_a, run_b).run(noise, comparison, verdict);
  };
}

}  // namespace opguard
