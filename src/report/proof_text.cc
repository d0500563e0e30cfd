// A proof in sentences. Each begins with what was done, and ends with what came of it.
//
//   put in place, healed       "with run a's results put in place, every model value of run b
//                              is run a's"
//   put in place, changed      "..., run b agrees with run a up to step 2, where the loss differs;
//                              without, up to step 0, where the loss differs"
//   text exchanged, healed     "with model.py:12 as in a, every model value of run b is run a's"
//   no re-run possible         "run a does not repeat itself: its re-run did not reach model.py:12"
//
// Counterexample: "model.py:12 is the cause". No sentence here says more than its re-run showed,
// and where something was not asked, that is said.
#include "report/proof_text.h"

#include "align/judge/pivot_view.h"
#include "report/reasons.h"
#include "report/region.h"
#include "support/text.h"

namespace opguard {
namespace {

const char* put_text(Place place) {
  switch (place) {
    case Place::results:
      return "run a's results";
    case Place::inputs:
      return "what run a read";
    case Place::draws:
      return "what run a drew behind it";
    case Place::downstream:
      return "run a's results of the operators that read it";
    case Place::around:
      return "run a's results of the operator around it";
    case Place::question:
    case Place::several:
      break;
  }
  return "run a's values";
}

// "with run a's results put in place at 2 executions, "
std::string with_put(const ProofReason& reason) {
  std::string text = std::string("with ") + put_text(reason.place) + " put in place";
  if (reason.executions > 1) text += " at " + std::to_string(reason.executions) + " executions";
  return text + ", ";
}

// "step 0, micro-batch 1, where the loss differs"
std::string moment_text(const Run& a, const Run& b, const Moment& moment) {
  std::string text = "step " + std::to_string(moment.step);
  if (moment.micro_batch) text += ", micro-batch " + std::to_string(*moment.micro_batch);
  if (moment.rank) text += ", rank " + std::to_string(*moment.rank);
  return text + ", where " + words(a, b, moment.what);
}

std::string healed_text(const Outcomes& outcomes) {
  return "every model value of run b is run a's" +
         (outcomes.until ? " to the end of step " + std::to_string(*outcomes.until) : "");
}

std::string outcome_text(const Run& a, const Run& b, const ProofReason& reason) {
  const Outcomes& outcomes = reason.outcomes;
  switch (outcomes.effect) {
    case Effect::healed:
      return with_put(reason) + healed_text(outcomes);
    case Effect::changed:
      if (!outcomes.with || !outcomes.without)
        return with_put(reason) + "the first differing model value changes, and is not yet run a's";
      return with_put(reason) + "run b agrees with run a up to " +
             moment_text(a, b, *outcomes.with) + "; without, up to " +
             moment_text(a, b, *outcomes.without);
    case Effect::unchanged:
      return with_put(reason) + "the first differing model value stays as it was, bit for bit";
    case Effect::unknown:
      return words(b, outcomes.obstacle);
  }
  return "";
}

std::string exchange_text(const Run& b, const ProofReason& reason) {
  const std::string with = "with " + words(reason.places) + " as in a, ";
  switch (reason.outcomes.effect) {
    case Effect::healed:
      return with + healed_text(reason.outcomes);
    case Effect::changed:
      return with + "something else still differs";
    case Effect::unchanged:
      return with + "the same model value still differs";
    case Effect::unknown:
      return with + words(b, reason.outcomes.obstacle);
  }
  return "";
}

// "run a does not repeat itself: its re-run gives other values at model.py:12"
std::string unrepeated_text(const Run& a, const ProofReason& reason) {
  return std::string("run a does not repeat itself: ") +
         (reason.repeat == Repeat::not_reached ? "its re-run did not reach "
                                               : "its re-run gives other values at ") +
         place(view(a, reason.event));
}

}  // namespace

std::string words(Refusal refusal) {
  switch (refusal) {
    case Refusal::none:
      return "";
    case Refusal::unlike_results:
      return "no result of it has the same dtype and shape in both runs, nor has any operator's "
             "that reads it";
    case Refusal::one_run_alone:
      return "only one run has it, and no operator after it has results of the same dtype and "
             "shape in both";
    case Refusal::too_often:
      return "it runs too often to be made good everywhere";
    case Refusal::too_many_values:
      return "too many values would have to be put in place";
    case Refusal::nothing_differs:
      return "no operator of both runs leaves another value of one shape";
    case Refusal::too_much_differs:
      return "more operators differ, or larger tensors, than can be asked at once";
  }
  return "";
}

std::string words(const std::vector<TextPlace>& places) {
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < places.size() && i < kMost; ++i)
    text +=
        (i == 0 ? "" : ", ") + places[i].file + ":" + lines_text(places[i].first, places[i].last);
  return places.size() > kMost ? text + " and " + std::to_string(places.size() - kMost) + " more"
                               : text;
}

std::string words(const Run& run, const Obstacle& obstacle, int side) {
  const EventView event = view(run, obstacle.event);
  const std::string unlike =
      std::string("run ") + (side == 0 ? "a" : "b") + " does not repeat itself: ";
  // An obstacle without an event (other processes) has no place.
  const std::string named = event ? place(event) + " " + event.operator_name : "";
  switch (obstacle.kind) {
    case Hindrance::none:
      return "";
    case Hindrance::other_processes:
      return unlike + "it has other processes";
    case Hindrance::other_value_before:
      return unlike + named + " gives another value before it";
    case Hindrance::not_run_again:
      return unlike + place(event) + " did not run again";
    case Hindrance::other_value:
      return unlike + named + " gives another value";
    case Hindrance::not_reached:
      return "the re-run did not come to the value that differs";
    case Hindrance::not_put:
      return "the value could not be put in place: " +
             (obstacle.fate.empty() ? "the re-run did not reach it" : obstacle.fate);
    case Hindrance::another_way:
      return "the re-run went another way after the value was put in place";
    case Hindrance::other_inputs:
      return "another difference reaches " + named +
             ", where values were put in place: it may only follow";
  }
  return "";
}

std::string words(const Run& a, const Run& b, const ProofReason& reason) {
  switch (reason.kind) {
    case ProofReasonKind::none:
      return "";
    case ProofReasonKind::nothing_to_heal:
      return "no model value differs that could be made good";
    case ProofReasonKind::too_few_runs:
      return "a proof takes two further runs at least";
    case ProofReasonKind::nothing_to_put:
      return "no value of run a can be put into run b";
    case ProofReasonKind::none_forced:
      return "no candidate could be forced";
    case ProofReasonKind::refused:
      return words(reason.refusal);
    case ProofReasonKind::unasked:
      return "what was found read other values than run a's, and " + words(reason.refusal);
    case ProofReasonKind::follows:
      return "it read other values than run a's: what made them comes first";
    case ProofReasonKind::unnamed:
      return "no value can be put in place: its name cannot be written as a selection";
    case ProofReasonKind::unwritten:
      return "run a's value was not written";
    case ProofReasonKind::capture_failed:
      return "the re-run of a failed: " + reason.error;
    case ProofReasonKind::force_failed:
      return "with run a's values in place, " + reason.error;
    case ProofReasonKind::unrepeated:
      return unrepeated_text(a, reason);
    case ProofReasonKind::hindered:
      return words(b, reason.outcomes.obstacle);
    case ProofReasonKind::measured:
      return words(a, b, reason.found);
    case ProofReasonKind::all_alike:
      return "each operator that both runs have leaves run a's result of what run a's reads";
    case ProofReasonKind::outcome:
      return outcome_text(a, b, reason);
    case ProofReasonKind::exchanged:
      return exchange_text(b, reason);
    case ProofReasonKind::healed_alone:
      return "with run a's results at " + place(view(b, reason.event)) +
             " alone, every model value of run b is run a's";
    case ProofReasonKind::left_out:
      return "with run b's results put in place here, every model value of run a stays as it is";
    case ProofReasonKind::isolated:
      return "with run a's values in place of all that it is made of, it is another result still";
    case ProofReasonKind::isolated_unknown:
      if (reason.executions == 0)
        return "it is another result with run a's values in place, but it may follow what ranks "
               "exchanged, or scale a loss as programs do";
      return "it is another result with run a's values in place, but nobody recorded made " +
             counted(reason.executions, "value") + " that it is made of";
    case ProofReasonKind::nothing_isolated:
      return "with run a's values in place nothing that differs stands by itself";
  }
  return "";
}

const char* proof_name(ProofState state) {
  static constexpr const char* kNames[] = {"none", "indicated", "proven"};
  return kNames[static_cast<size_t>(state)];
}

const char* need_name(Need need) {
  static constexpr const char* kNames[] = {"unasked", "only", "left out", "acts", "together"};
  return kNames[static_cast<size_t>(need)];
}

std::string need_text(const ProofReport& proof, const Cause& cause) {
  if (proof.causes.size() < 2) return "";
  switch (cause.need) {
    case Need::only:
      return "";
    case Need::left_out:
      return "needed: with everything else as in run a, and this as in run b, the runs part";
    case Need::acts:
      return "it counts: with its values in place the first differing model value is another; "
             "whether the runs part by it alone was not asked";
    case Need::together:
      return "needed, it or another of these: with the first cause made good the runs still part; "
             "each by itself was not asked";
    case Need::unasked:
      break;
  }
  return "whether the runs part by it alone was not asked";
}

std::string asked_text(const ProofReport& proof) {
  if (!proof.asked) return "";
  const Asked& asked = *proof.asked;
  // An execution that the run did not come to counts among those that differ, and is told behind
  // them.
  const uint64_t all = asked.same + asked.other + asked.not_reached;
  std::string text = "of " + counted(all, "execution") + " that differ" + (all == 1 ? "s" : "") +
                     ", each given what run a's read, " + std::to_string(asked.same) +
                     (asked.same == 1 ? " leaves" : " leave") + " run a's result and " +
                     std::to_string(asked.other) + " another";
  if (asked.not_reached > 0)
    text += "; " + std::to_string(asked.not_reached) + " could not be asked";
  return text;
}

std::string repetition_text(const Report& report) {
  if (!report.proof || !report.proof->repetition) return "";
  const Repetition& found = *report.proof->repetition;
  if (!found.unrepeated)
    return std::string("run ") + (found.side == 0 ? "a" : "b") +
           " was made again as it was, and repeats itself to the end of the step";
  const std::string text =
      words(found.side == 0 ? report.a : report.b, found.unrepeated, found.side);
  // Given the same, another result: what decides it cannot be found in any log.
  return text + (found.at_a_cause ? " of the same inputs: what decides it is recorded nowhere (a "
                                    "race, a clock, random numbers without a seed)"
                                  : "");
}

}  // namespace opguard
