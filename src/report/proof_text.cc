#include "report/proof_text.h"

#include "align/judge/pivot_view.h"
#include "report/reasons.h"

namespace opguard {
namespace {

// "with run a's results put in place at 2 executions, "
std::string with(const Experiment& experiment) {
  const char* what =
      experiment.place == Place::inputs       ? "what run a read"
      : experiment.place == Place::results    ? "run a's results"
      : experiment.place == Place::draws      ? "what run a drew behind it"
      : experiment.place == Place::around     ? "run a's results of the operator around it"
      : experiment.place == Place::downstream ? "run a's results of the operators that read it"
                                              : "run a's values";
  std::string text = std::string("with ") + what + " put in place";
  if (experiment.executions > 1)
    text += " at " + std::to_string(experiment.executions) + " executions";
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

std::string counted(uint64_t n, const char* noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

}  // namespace

std::string exchange_outcome_text(const Run& b, const std::string& places,
                                  const Outcomes& outcomes) {
  const std::string with = "with " + places + " as in a, ";
  switch (outcomes.effect) {
    case Effect::healed:
      return with + healed_text(outcomes);
    case Effect::changed:
      return with + "something else still differs";
    case Effect::unchanged:
      return with + "the same model value still differs";
    case Effect::unknown:
      return with + obstacle_text(b, outcomes.obstacle);
  }
  return "";
}

std::string obstacle_text(const Run& run, const Obstacle& obstacle, int side) {
  const EventView event = view(run, obstacle.event);
  const std::string unlike =
      std::string("run ") + (side == 0 ? "a" : "b") + " does not repeat itself: ";
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

std::string outcome_text(const Run& a, const Run& b, const Experiment& experiment,
                         const Outcomes& outcomes) {
  switch (outcomes.effect) {
    case Effect::healed:
      return with(experiment) + healed_text(outcomes);
    case Effect::changed:
      if (!outcomes.with || !outcomes.without)
        return with(experiment) + "the first differing model value changes, and is not yet run a's";
      return with(experiment) + "run b agrees with run a up to " +
             moment_text(a, b, *outcomes.with) + "; without, up to " +
             moment_text(a, b, *outcomes.without);
    case Effect::unchanged:
      return with(experiment) + "the first differing model value stays as it was, bit for bit";
    case Effect::unknown:
      return obstacle_text(b, outcomes.obstacle);
  }
  return "";
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
      obstacle_text(found.side == 0 ? report.a : report.b, found.unrepeated, found.side);
  return text + (found.at_a_cause ? " of the same inputs: what decides it is recorded nowhere (a "
                                    "race, a clock, random numbers without a seed)"
                                  : "");
}

std::string healed_alone_text(const Run& b, const EventRef& cause) {
  return "with run a's results at " + place(view(b, cause)) +
         " alone, every model value of run b is run a's";
}

std::string left_out_text() {
  return "with run b's results put in place here, every model value of run a stays as it is";
}

std::string repeat_text(const Run& run, const EventRef& event, Repeat repeat) {
  if (repeat == Repeat::same) return "";
  return (repeat == Repeat::not_reached ? "its re-run did not reach "
                                        : "its re-run gives other values at ") +
         place(view(run, event));
}

}  // namespace opguard
