// confirm/proof_reason.h: what running again says, as values. The sentences are made in
// report/proof_text.h.
//
//   what is said                                              the value
//   "with run a's results put in place, every model ..."      {outcome, place, outcomes}
//   "run a does not repeat itself: its re-run gives ..."      {unrepeated, event, repeat}
//   "with run a's values in place, b ends with exit code 1"   {force_failed, error}
//
// So a test asks for a kind, a program reads an operand, and a wording changes in one place.
// Counterexample: how a program ended is no sentence of ours; it is an operand, as it was told.
#pragma once

#include <string>
#include <vector>

#include "confirm/confirm.h"

namespace opguard {

// Behind each kind stand its operands.
enum class ProofReasonKind : uint8_t {
  none,
  // No run was made for it.
  nothing_to_heal,  // no model value differs
  too_few_runs,
  nothing_to_put,  // of all candidates
  none_forced,
  refused,    // refusal
  unasked,    // what was found follows something, and asking was refused; refusal
  follows,    // it read other values than run a's
  unnamed,    // its place has no selection
  unwritten,  // run a's value was not
  // A run failed, or was another.
  capture_failed,  // run a's; error
  force_failed,    // run b's, with values in place; error
  unrepeated,      // event: of run a, repeat
  hindered,        // outcomes.obstacle: of run b
  // A run was made.
  measured,      // found; nothing was forced by itself
  all_alike,     // each operator asked leaves run a's result of what run a's reads
  outcome,       // place, executions: of what was put in; outcomes
  exchanged,     // places: of the text that was put in; outcomes
  healed_alone,  // all was healed by another cause alone; event: where, of run b
  left_out,      // run a stayed as it is with run b's results here
  // --isolate: reads of the candidate have the reference's values in place.
  isolated,          // what was made of these is another result
  isolated_unknown,  // it is, and `executions` values it was made of nobody recorded made
  nothing_isolated,  // nothing is at fault by itself: each is made of what could not be put in
};

// A stretch of a file's lines, as a person names it.
struct TextPlace {
  std::string file;
  uint32_t first = 0, last = 0;
  bool operator==(const TextPlace&) const = default;
};

struct ProofReason {
  ProofReasonKind kind = ProofReasonKind::none;
  Refusal refusal = Refusal::none;
  EventRef event{};
  Repeat repeat = Repeat::same;
  Place place = Place::results;
  uint32_t executions = 0;
  Outcomes outcomes{};
  Reasons found{};
  std::vector<TextPlace> places{};
  std::string error{};  // how a program ended, one line

  explicit operator bool() const { return kind != ProofReasonKind::none; }
};

// Of what was refused; none if nothing was.
inline ProofReason refused(const Experiment& experiment) {
  if (experiment.possible()) return {};
  return {.kind = ProofReasonKind::refused, .refusal = experiment.refused};
}

// Of a run with an experiment's values in place.
inline ProofReason said(const Experiment& experiment, const Outcomes& outcomes) {
  return {.kind = ProofReasonKind::outcome,
          .place = experiment.place,
          .executions = experiment.executions,
          .outcomes = outcomes};
}

}  // namespace opguard
