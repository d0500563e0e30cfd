// align/judge/reason.h: what the judgement says, as values. The sentences are made in
// report/reasons.h.
//
//   what is said                                       the value
//   "run a saves 3 times, run b 2"                     {saves, numbers {3, 2}}
//   "only run b has this operator, on values both ..." {only_one_run, side 1}
//   "a buffer differs after a step: bn.running_mean"   {buffer_differs, names {"bn.running_mean"}}
//
// So a test asks for a kind, a program reads an operand, and a wording changes in one place.
// Counterexample: what a user wrote (a rule's reason) or a log holds (how a run ended) is no
// sentence of ours; it is an operand.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "record/event_ref.h"

namespace opguard {

enum class PivotKind : uint8_t;

// Behind each kind stand its operands.
enum class ReasonKind : uint8_t {
  // What the runs are judged by: the first that differs.
  loss_differs,
  number_differs,
  buffer_differs,  // names: the buffer
  saved_differs,   // names: the tensor
  lasting_differs,
  result_differs,
  parameters_differ,
  gradients_differ,
  optimizer_state_differs,
  more_values,
  final_values_differ,
  last_values_differ,
  somebody_draws,  // behind state_differs*: of this generator
  // ... or that none does, and how much of it was compared.
  all_agree,
  nothing_compared,
  rest_agrees,    // but: the next reason
  unreached,      // numbers: pairs
  hidden_differ,  // numbers: model values
  // ... or that it cannot be told.
  unlike_settings,     // names: the key, of compare_settings
  ended,               // side, names: how
  equal_until_ended,   // behind `ended`
  compared_until_end,  // behind `ended`
  held_agrees,
  held_differs,
  log_not_whole,     // side, events[side]: the process
  no_common_step,    // names: which steps a has, which b has
  apart_at_window,   // numbers: the step, differing, tensors; names: the first that differs
  cause_unrecorded,  // behind it
  window,            // side, names: which steps its log has
  behind_cut,        // side, numbers: its events behind the end of the other's log
  parted_unkept,     // numbers: the first step that differs, the first that both logs still hold
  // Behind it; numbers: parts of the step that differ, of how many; events[0]: the process.
  parted_event,  // numbers[2]: the micro-batch; names: the first of them, its phase
  parted_parts,  // names: some of them
  equal_unread,  // numbers: pairs, steps that were not read, the first that was
  // What one run alone has, or has otherwise.
  saves,              // numbers: times, a and b
  backward_passes,    // numbers: the one and the other
  optimizer_steps,    // the same
  alone_in_buffers,   // side, numbers: how many of how many, names: the first
  alone_in_saved,     // the same
  other_pieces,       // numbers: after so many of how many steps
  parameter_alone,    // side, names: the parameter
  parameters_unlike,  // numbers: as above; why: the next reason
  gradients_unlike,   // the same
  state_unlike,       // the same, names: the state
  state_names,        // names: of a, of b
  state_alone,        // side, names: the state
  without_digest,
  shows_none,   // side
  other_types,  // names: of a, of b
  element_sums_differ,
  // A generator of random numbers: names: which.
  state_differs_once,   // numbers: the step
  state_differs_since,  // numbers: the step, differing, records
  state_differs,        // from the start; numbers: -, differing, records
  on_processes,         // numbers: how many
  on_rank,              // numbers: which
  parted_at_start,
  parted_at_draw,  // numbers: the step
  parted_at_step,  // numbers: the step, the last one that was equal
  // Why an operator is named.
  other_result,
  other_argument,
  other_operators,
  in_graph_of_one,
  other_shape,
  only_one_run,  // side
  writes_elsewhere,
  given_another,
  hands_another_number,
  summed_in_other_order,  // numbers: how many summands
  made_by_nobody,
  overwritten,
  moves_generator,  // side
  other_numbers_after,
  went_on_unrecorded,
  damaged_record,
  reads_hidden,    // names: the rule, its reason
  hidden_reaches,  // the same
  other_call,
  only_call,      // side
  call_argument,  // names: the parameter, its text in a, in b
  call_context,   // side, names: the block's header
  // What else is known of it.
  likely_false_alarm,
  alone_differing,    // events[1], slots[1], numbers: how many pairs
  recomputed_unlike,  // side
  recompute_finding,  // side, events[side], pivot, numbers: further ones
  reads_overwritten,  // side
  overwrite_finding,  // side, events: left it, read it; numbers: further ones
  first_use,          // side, events: left it, saw other bytes
  // Of one run by itself: what recomputation and memory show.
  recompute_other_input,
  recompute_other_shape,
  recompute_other_argument,
  recompute_other_numbers,
  recompute_other_result,
  recompute_other_result_shape,
  memory_overwritten,  // events, slots: left it, read it
  more_readers,        // numbers: how many
  times,               // numbers: how many
  // Measured by running again.
  measured_result,
  measured_argument,
  measured_only,  // side
  measured_otherwise,
  measured_unmade,
  // Of runs of one tree: what differs by itself, and what it may come from.
  noise_differs,  // numbers: runs, records
  noise_agrees,   // numbers: runs
  noise_idle,     // behind it: states of generators that nobody draws from differ
  noise_reaches,  // the model values: the other reasons
  rng_state,      // the next reason
  race,
  from_outside,
  varies_in_count,
  idle_generator,    // names: the generator
  unlike_generator,  // the same
  number_from_outside,
  wall_clock,
  monotonic_clock,
  process_number,
  address,
  in_each_run,  // names: the text in one run, in another
  varies_in_shape,
  data_order_given,
  data_order_held,
  uninitialised,  // names: the slot
  draws,
  draws_unseeded,
  collective_order,
  rows_in_other_order,
  made_of_unrecorded,
  no_fixed_order,
  number_from_noise,
  // Of a comparison within rounding.
  within_rounding,    // numbers: tensors; ratio: the worst of error over noise
  beyond_rounding,    // numbers: how many that runs are judged by, the step; names: the first
  other_weights,      // numbers: how many of how many; names: the first
  inner_unexplained,  // numbers: how many
  layer_of_none,      // numbers: the layer; names: its prefix
  layer_again,      // numbers: the layer, a rank that has it as well as another; names: its prefix
  not_summed,       // numbers: ranks
  times_factor,     // ratio
  others_finished,  // names: a gradient, another one
  read_unfinished,  // names: a gradient
  pieces_omitted,   // numbers: how many
  another_value,    // numbers: step, micro-batch; names: module
  held_twice,       // names: a parameter of the reference, of the candidate two for it
  gradient_cut,     // a summand is missing
  left_as_it_was,   // it wrote what was there
  left_out,         // it writes the other parameters, and not this one: names[0]
  left_in_part,     // it writes a part of it alone: names[0]
  saved_overwritten,  // numbers: the micro-batch that did it
  elements_moved,     //
  some_ranks,         // numbers: how many of how many, the first
  narrower_type,      // names: the type
  beyond_noise,       // ratio: of the error over what is allowed
  // names: what is declared, the dimensions and the ranks; numbers: the kind of placement
  declared_otherwise,
  // numbers: placements that are declared, that are otherwise, of which nothing is told; names: the
  // first that is otherwise, and its declaration
  placements_declared,
  drowned,            // numbers: gradients; ratio: the most that rounding alone moves one
  drawn_otherwise,    // names: the operator and its place
  left_unjudged,      // numbers: losses, gradients and parameters so, and those without a partner;
                      // names: the first
  hole_in_log,        // side, names: the log
  several_processes,  // side: the reference is itself parallel, and no data parallel replicas
  no_sketches,        // side
  jittered,           // side
  not_jittered,       // names: the log
  other_slices,       // names: the setting that is there and the one that is needed
};

struct Reason {
  ReasonKind kind = ReasonKind::loss_differs;
  int side = -1;                                // 0: run a, 1: run b
  std::array<uint64_t, 3> numbers{};            // counts and steps
  std::array<std::string, 3> names{};           // as the logs and sources have them
  std::array<EventRef, 2> events{};             // by side where the kind says so, else of one run
  std::array<uint32_t, 2> slots{kNone, kNone};  // of these, in ProcessLog::slots
  PivotKind pivot{};
  double ratio = 0;
  bool operator==(const Reason&) const = default;
};

// One sentence: its clauses in order.
using Reasons = std::vector<Reason>;

}  // namespace opguard
