#include "report/proof_text.h"

#include "align/judge/pivot_view.h"
#include "report/reasons.h"

namespace opguard {
namespace {

// "with run a's results put in place at 2 executions, "
std::string with(const Experiment& experiment) {
  const char* what = experiment.place == Place::inputs    ? "what run a read"
                     : experiment.place == Place::results ? "run a's results"
                     : experiment.place == Place::draws   ? "what run a drew behind it"
                     : experiment.place == Place::downstream
                         ? "run a's results of the operators that read it"
                         : "run a's results of all of them";
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

std::string obstacle_text(const Run& b, const Obstacle& obstacle) {
  const EventView event = view(b, obstacle.event);
  const std::string named = event ? place(event) + " " + event.operator_name : "";
  switch (obstacle.kind) {
    case Hindrance::none:
      return "";
    case Hindrance::other_processes:
      return "run b does not repeat itself: it has other processes";
    case Hindrance::other_value_before:
      return "run b does not repeat itself: " + named + " gives another value before it";
    case Hindrance::not_run_again:
      return "run b does not repeat itself: " + place(event) + " did not run again";
    case Hindrance::other_value:
      return "run b does not repeat itself: " + named + " gives another value";
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

std::string repeat_text(const Run& run, const EventRef& event, Repeat repeat) {
  if (repeat == Repeat::same) return "";
  return (repeat == Repeat::not_reached ? "its re-run did not reach "
                                        : "its re-run gives other values at ") +
         place(view(run, event));
}

}  // namespace opguard
