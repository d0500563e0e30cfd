// Most reasons are a fixed sentence (kPlain). The others put numbers, names and events into one.
//
//   {loss_differs}                             "the loss differs"
//   {all_agree}, {hidden_differ, 12}           "every model value of the two runs agrees, but for
//                                              12 differing that rules hide"
//   {parted_at_start}, {parted_at_draw}        "the random state of ... differs since the start of
//                                              the run; that of ... differs since a draw of step 3"
//
// What stands between two reasons depends on both: joint() has "; " and the exceptions.
// Counterexample: a joint that is part of a reason's own text. It would show where the reason
// stands alone, or first.
#include "report/reasons.h"

#include <algorithm>
#include <string_view>

#include "align/judge/pivot_view.h"
#include "record/step_window.h"
#include "report/parted_words.h"
#include "report/tolerance_text.h"
#include "support/text.h"

namespace opguard {
namespace {

using enum ReasonKind;

struct Plain {
  ReasonKind kind;
  std::string_view text;
};

// What has no operand.
constexpr Plain kPlain[] = {
    {loss_differs, "the loss differs"},
    {number_differs, "a reported number differs"},
    {lasting_differs, "a tensor that outlives its step differs"},
    {result_differs, "the result of an outermost call differs"},
    {parameters_differ, "the parameters differ after a step"},
    {gradients_differ, "the gradients differ that a step reads"},
    {optimizer_state_differs, "the optimizer's state differs after a step"},
    {more_values, "one run computes more model values"},
    {final_values_differ, "the final values differ"},
    {last_values_differ, "what the runs computed last differs, before it reached a model value"},
    {somebody_draws, "and somebody draws from it"},
    {all_agree, "every model value of the two runs agrees"},
    {nothing_compared, "the runs hold no values that could be compared"},
    {rest_agrees, "what could be compared agrees"},
    {equal_until_ended, "until then every model value is equal"},
    {compared_until_end, "what it did until then is compared"},
    {held_agrees, "what both logs hold agrees"},
    {cause_unrecorded, "the cause is in a step that was not recorded"},
    {held_differs, "the runs differ by what one log does not hold"},
    {without_digest, "a value of theirs has no digest in the logs, or a rule hides it"},
    {element_sums_differ, "the sums over their elements differ"},
    {other_result, "every tensor and scalar input is equal, the result is not"},
    {other_argument, "every tensor input is equal, a non-tensor argument is not"},
    {other_operators, "the runs part into different operators, on values both of them hold"},
    {in_graph_of_one, "the result takes part in backward in one run only"},
    {other_shape, "the operator works on another dtype, shape or number of tensors"},
    {writes_elsewhere, "the operator writes into another tensor than in the other run"},
    {given_another,
     "the operator is given another value than in the other run, one both of them hold"},
    {hands_another_number, "each run hands another number to Python here, one both of them hold"},
    {made_by_nobody, "an input differs that no recorded operator made"},
    {overwritten, "an input's memory was overwritten and no recorded operator wrote it"},
    {other_numbers_after, "the random numbers after it are others"},
    {went_on_unrecorded, "its result went on through code without operators"},
    {damaged_record,
     "one fingerprint of the record differs, the other does not: a log is not what was written"},
    {other_call, "the runs call different functions"},
    {likely_false_alarm,
     "likely a false alarm: its neighbours are equal and nothing reads what differs"},
    {recompute_other_input, "the recomputation is given another value than the forward was"},
    {recompute_other_shape, "the recomputation works on another dtype, shape or number of tensors"},
    {recompute_other_argument,
     "every tensor input is equal in the recomputation, a non-tensor argument is not"},
    {recompute_other_numbers,
     "the recomputation draws other random numbers: the generator's state is not what it was in "
     "the forward"},
    {recompute_other_result,
     "the recomputation reads what the forward read, its result is another"},
    {recompute_other_result_shape,
     "the recomputation reads what the forward read, its result has another dtype or shape"},
    {measured_result, "measured: it leaves another result of what run a's read"},
    {measured_argument, "measured: other arguments, and another result of what run a's read"},
    {measured_otherwise,
     "measured: the runs do otherwise here, and of what both read another value comes"},
    {measured_unmade, "measured: it reads what nobody recorded made, and leaves another result"},
    {noise_idle, "but states of generators nobody draws from"},
    {noise_reaches, "the noise reaches the model values"},
    {rng_state, "RNG state"},
    {race, "race: this memory is overwritten and no recorded operator wrote it"},
    {from_outside, "comes out of code without operators (numpy, Python, a file)"},
    {varies_in_count,
     "runs more often in one run than in the other: control flow that depends on timing"},
    {number_from_outside,
     "a number from outside the recorded operators (a duration, a counter, random)"},
    {wall_clock, "wall clock: a number that is another one in every run"},
    {monotonic_clock, "monotonic clock: a number that is another one in every run"},
    {process_number, "process number: a number that is another one in every run"},
    {address, "address: a number that is another one in every run"},
    {varies_in_shape, "of another shape, dtype or number of tensors from run to run"},
    {data_order_given, "data order: it is given a value that the other run holds elsewhere"},
    {data_order_held, "data order: the other run holds this value at another place"},
    {draws, "RNG state: draws random numbers"},
    {draws_unseeded, "RNG state: draws random numbers from a generator that is not seeded"},
    {collective_order, "a collective: in which order ranks are summed is not fixed"},
    {rows_in_other_order, "equal inputs, the same rows in another order"},
    {made_of_unrecorded,
     "made of what no recorded operator gave it (a clock, a file, numpy, a generator)"},
    {no_fixed_order,
     "equal inputs, another result: sums in no fixed order (atomics, threads), or memory it reads "
     "unseen"},
    {number_from_noise, "a number reported from noise"},
};

std::string number(uint64_t n) { return std::to_string(n); }

std::string run_name(int side) { return std::string("run ") + (side == 0 ? "a" : "b"); }

// Source text, in so many characters.
std::string cut(const std::string& text) {
  return text.size() <= 40 ? "`" + text + "`" : "`" + text.substr(0, 37) + "...`";
}

// "steps 100 to 103", "steps from 0 on, every 10th"
std::string window_words(const std::string& text) {
  StepWindow window;
  std::string error;
  if (!parse_window(text, window, error)) return "all steps";
  std::string words = window.to == kNone
                          ? "steps from " + number(window.from) + " on"
                          : "steps " + number(window.from) + " to " + number(window.to);
  return window.every == 1 ? words : words + ", every " + number(window.every) + "th,";
}

class Wording {
 public:
  Wording(const Run& a, const Run& b, const Reason& reason) : runs_{&a, &b}, reason_(reason) {}

  std::string text() const {
    const auto plain = std::find_if(std::begin(kPlain), std::end(kPlain),
                                    [&](const Plain& p) { return p.kind == reason_.kind; });
    return plain != std::end(kPlain) ? std::string(plain->text) : with_operands();
  }

 private:
  std::string with_operands() const {
    const auto& [first, second, third] = reason_.numbers;
    const auto& names = reason_.names;
    const std::string run = run_name(reason_.side);
    switch (reason_.kind) {
      case buffer_differs:
        return "a buffer differs after a step: " + names[0];
      case saved_differs:
        return "what is saved differs: " + names[0];
      case unreached:
        return number(first) +
               (first == 1 ? " pair differs and reaches" : " pairs differ and reach") +
               " none of it";
      case hidden_differ:
        return "but for " + number(first) + " differing that rules hide";
      case unlike_settings:
        return "the runs were made under unlike settings of opguard: " + refused(names[0]);
      case ended:
        return run + " ended with " + names[0];
      case no_common_step:
        return "no step is recorded in both runs: run a has " + window_words(names[0]) +
               ", run b has " + window_words(names[1]);
      case apart_at_window:
        return "the runs already differed as step " + number(first) + " began: " + grouped(second) +
               " of " + counted(third, "tensor") + " that its optimizer finds, " + names[0] +
               " first";
      case window:
        return "of " + run + " " + window_words(names[0]) +
               " are recorded: nothing is said of other steps";
      case log_not_whole: {
        const ProcessLog& log =
            runs_[reason_.side]->processes[reason_.events[reason_.side].process];
        const std::string of = "but the log of " + std::string(1, "ab"[reason_.side]);
        if (log.removed.segments > 0)
          return of + " begins behind step " + std::to_string(log.removed.last_step) +
                 ": run --keep removed what was before; rank " + std::to_string(log.rank) + ", " +
                 log.path;
        return of + " is not whole: rank " + std::to_string(log.rank) + ", " + log.path;
      }
      case behind_cut:
        return counted(first, "event") + " of " + run + (first == 1 ? " lies" : " lie") +
               " behind the end of the other run's log: not compared";
      case parted_unkept:
        return "the steps' digests differ from step " + number(first) + " on, and steps before " +
               number(second) + " were removed (run --keep)";
      case parted_event:
      case parted_parts:
        return parted_words(*runs_[0], reason_);
      case equal_unread:
        return counted(first, "pair") + " in the first " + counted(second, "step") +
               " are equal by the steps' digests, and were not read: of one run alone nothing is "
               "told there (--read all reads them)";
      case saves:
        return "run a saves " + number(first) + " times, run b " + number(second);
      case backward_passes:
        return "one run makes " + number(first) + " backward passes, the other " + number(second);
      case optimizer_steps:
        return "one run makes " + number(first) + " optimizer steps, the other " + number(second);
      case alone_in_buffers:
        return alone("holds", "buffers");
      case alone_in_saved:
        return alone("saves", "tensors");
      case other_pieces:
        return "the optimizers hold the parameters in other pieces: after " + number(first) +
               " of " + number(second) +
               " steps they are the same elements, of all ranks together, wherever they lie";
      case parameter_alone:
        return run + "'s optimizer alone steps the parameter " + names[0];
      case parameters_unlike:
        return "the optimizers hold the parameters in other shapes, and after " + apart();
      case gradients_unlike:
        return "the optimizers read the gradients in other shapes, and in " + apart();
      case state_unlike:
        return "the optimizers hold their state '" + names[0] + "' in other shapes, and after " +
               apart();
      case state_names:
        return "the optimizers keep their state under other names: " + names[0] + " in run a, " +
               names[1] + " in run b";
      case state_alone:
        return run + "'s optimizer alone keeps the state '" + names[0] + "'";
      case shows_none:
        return run + " shows none";
      case other_types:
        return "they are " + names[0] + " in run a and " + names[1] + " in run b";
      case state_differs_once:
        return "the random state of " + names[0] + " differs in one record of step " +
               number(first) + " and agrees before and after";
      case state_differs_since:
        return "the random state of " + names[0] + " differs since step " + number(first) +
               in_records();
      case state_differs:
        return "the random state of " + names[0] + " differs since the start of the run" +
               in_records();
      case on_processes:
        return "on " + number(first) + " processes";
      case on_rank:
        return "on rank " + std::to_string(static_cast<int64_t>(first));
      case parted_at_start:
        return names[0] + " differs since the start of the run";
      case parted_at_draw:
        return names[0] + " differs since a draw of step " + number(first);
      case parted_at_step:
        return names[0] + " differs since step " + number(first) + " (equal up to step " +
               number(second) + ")";
      case only_one_run:
        return "only " + run + " has this operator, on values both runs hold";
      case moves_generator:
        return "only " + run + " moves the random numbers' generator here";
      case reads_hidden:
        return "it reads " + hidden() + ": the difference reaches the model values";
      case hidden_reaches:
        return hidden() + " reaches the model values as well";
      case only_call:
        return "only " + run + " makes the call";
      case call_argument:
        return "the call gives it another " + names[0] + ": " + cut(names[1]) + " in a, " +
               cut(names[2]) + " in b";
      case call_context:
        return run + " calls it in `" + names[0] + "`";
      case alone_differing: {
        const EventView event = view(*runs_[1], reason_.events[1]);
        return (first == 1 ? "a pair differs alone: "
                           : number(first) + " pairs differ alone, the first: ") +
               place(event) + " " + event.operator_name + ", step " + number(event.event->step) +
               ", slot " + slot_name(event, reason_.slots[1]);
      }
      case recomputed_unlike:
        return "in " + run + " its recomputation does not reproduce its forward";
      case recompute_finding:
        return run + ": the recomputation of " + operator_at(reason_.events[reason_.side]) +
               " does not reproduce its forward (" + kind_name(reason_.pivot) + ")" +
               (first > 0 ? ", nor do " + number(first) + " more" : "") + kShown;
      case reads_overwritten:
        return "in " + run + " what it reads was overwritten by no recorded operator";
      case overwrite_finding:
        return run + ": memory that " + operator_at(reason_.events[0]) +
               " left was overwritten, by no recorded operator, before " +
               operator_at(reason_.events[1]) + " read it" +
               (first > 0 ? ", and " + number(first) + " more" : "") + kShown;
      case first_use:
        return "the first use of memory that " + operator_at(reason_.events[0]) + " left; in " +
               run +
               " it was overwritten while in use, by no recorded operator and beside another "
               "thread; " +
               operator_at(reason_.events[1]) +
               " was the first to read other bytes, which one is a matter of timing";
      case memory_overwritten: {
        const EventView left = view(*runs_[0], reason_.events[0]),
                        read = view(*runs_[0], reason_.events[1]);
        return "the memory of " + slot_name(left, reason_.slots[0]) + " that " +
               left.operator_name + " left was overwritten before " + read.operator_name +
               " read it as " + slot_name(read, reason_.slots[1]) +
               ": other bytes, the same tensor version, and no recorded operator wrote there";
      }
      case summed_in_other_order:
        return "autograd adds the same " + counted(first, "gradient") +
               " of one tensor in another order, from here on";
      case more_readers:
        return number(first) + " more read what was written there";
      case times:
        return counted(first, "time") + " in this run";
      case measured_only:
        return "measured: only " + run +
               " has this operator, and of what both read another value comes";
      case noise_differs:
        return number(first) + " runs of one tree differ by themselves, in " + number(second) +
               (second == 1 ? " record" : " records");
      case noise_agrees:
        return number(first) + " runs of one tree agree in every record";
      case idle_generator:
        return "the generator " + names[0] + " is seeded by chance; nobody draws from it then";
      case unlike_generator:
        return "the generator " + names[0] + " is not in the same state in two runs";
      case in_each_run:
        return "(" + names[0] + " in one run, " + names[1] + " in another)";
      case uninitialised:
        return "uninitialised memory: reads what torch.empty left in " + names[0];
      default:
        return tolerance_words(reason_);
    }
  }

  static constexpr const char* kShown = "; `opguard align --single` on its logs shows it";

  std::string alone(const std::string& does, const std::string& what) const {
    return run_name(reason_.side) + " alone " + does + " " + number(reason_.numbers[0]) +
           " of its " + number(reason_.numbers[1]) + " " + what +
           " by this name, or in this type: " + reason_.names[0];
  }

  std::string apart() const {
    return number(reason_.numbers[0]) + " of " + number(reason_.numbers[1]) +
           " steps they could not be put together from the other run's";
  }

  std::string in_records() const {
    return ", in " + number(reason_.numbers[1]) + " of " + number(reason_.numbers[2]) +
           (reason_.numbers[2] == 1 ? " record" : " records");
  }

  std::string hidden() const {
    return "what the rule '" + reason_.names[0] + "' hides (" + reason_.names[1] + ")";
  }

  std::string refused(const std::string& key) const {
    for (const SettingDifference& setting : compare_settings(*runs_[0], *runs_[1]).refused)
      if (setting.key == key) return words(setting);
    return key;
  }

  // Of the reason's side: "torch.mul at model.py:12".
  std::string operator_at(const EventRef& ref) const {
    const EventView event = view(*runs_[reason_.side], ref);
    return event.operator_name + " at " + place(event);
  }

  static std::string slot_name(const EventView& event, uint32_t slot) {
    return event.log->text(event.log->slots[slot].name);
  }

  const Run* runs_[2];
  const Reason& reason_;
};

bool parted(ReasonKind kind) {
  return kind == parted_at_start || kind == parted_at_draw || kind == parted_at_step;
}

// What stands between a clause and the next.
std::string_view joint(ReasonKind before, ReasonKind after) {
  switch (before) {
    case rest_agrees:
      return ", but ";
    case parameters_unlike:
    case gradients_unlike:
    case state_unlike:
    case rng_state:
      return ": ";
    case noise_agrees:
      return " ";
    default:
      break;
  }
  switch (after) {
    case somebody_draws:
    case hidden_differ:
    case log_not_whole:
    case on_processes:
    case on_rank:
      return ", ";
    case in_each_run:
      return " ";
    default:
      return "; ";
  }
}

}  // namespace

std::string words(const Run& a, const Run& b, const Reason& reason) {
  return Wording(a, b, reason).text();
}

std::string words(const Run& a, const Run& b, const Reasons& reasons) {
  std::string text;
  for (size_t i = 0; i < reasons.size(); ++i) {
    const Reason& reason = reasons[i];
    if (reason.kind == noise_reaches)
      return words(a, b, reason) + " (" +
             words(a, b, Reasons(reasons.begin() + static_cast<ptrdiff_t>(i) + 1, reasons.end())) +
             "): no rule hides that. --deterministic takes away what is only seeds and kernels";
    const bool follows = i > 0 && parted(reasons[i - 1].kind);
    if (i > 0) text += joint(reasons[i - 1].kind, reason.kind);
    if (parted(reason.kind)) text += follows ? "that of " : "the random state of ";
    text += words(a, b, reason);
  }
  return text;
}

std::vector<std::string> words(const Run& a, const Run& b, const std::vector<Reasons>& notes) {
  std::vector<std::string> all;
  for (const Reasons& note : notes) all.push_back(words(a, b, note));
  return all;
}

std::string words(const SettingDifference& setting) {
  auto told = [](const std::optional<std::string>& value) {
    return !value ? "not set" : value->empty() ? "empty" : *value;
  };
  return setting.key + " differs: " + told(setting.a) + " in a, " + told(setting.b) + " in b";
}

std::vector<std::string> words(const std::vector<SettingDifference>& settings) {
  std::vector<std::string> all;
  for (const SettingDifference& setting : settings) all.push_back(words(setting));
  return all;
}

}  // namespace opguard
