// What the columns of columns.h are called, and what may be concluded of them.
//
//   concluded("dtype", "dtype")             may be what follows, and may be asked
//   meaning("held", "coverage")             the same; asked, it needs one program's counterexamples
//   known("requires_grad"), asked("attr")   only asked; of the first the meaning is known
//   own("name")                             asked where all runs are of one program
//
// A column is concluded where a broken rule of it tells a person what to mend. Counterexample:
// `first` and `dims` are only circumstances.
//
// The trap: the order is that of the enums. The static_asserts see a column too many, and no two
// that were swapped.
#include <algorithm>
#include <array>

#include "invariants/view.h"
#include "invariants/views/columns.h"

namespace opguard {

namespace {

// May be concluded, and asked before.
constexpr ViewColumn concluded(std::string_view name, std::string_view relation,
                               std::string_view family = {}) {
  return {.name = name, .concluded = true, .family = family, .relation = relation};
}
// Concluded, and what it means as a condition is known.
constexpr ViewColumn meaning(std::string_view name, std::string_view relation,
                             std::string_view family = {}) {
  return {
      .name = name, .concluded = true, .semantic = true, .family = family, .relation = relation};
}
// Asked before, never concluded.
constexpr ViewColumn asked(std::string_view name) { return {.name = name}; }
constexpr ViewColumn known(std::string_view name) { return {.name = name, .semantic = true}; }
constexpr ViewColumn own(std::string_view name) { return {.name = name, .names = true}; }

constexpr std::array kParameterColumns = {known("requires_grad"),
                                          meaning("held", "coverage"),
                                          known("used"),
                                          meaning("has_grad", "coverage", "gradient"),
                                          concluded("gradient_zero", "contain", "gradient"),
                                          known("gradient_slight"),
                                          concluded("gradient_finite", "finite", "gradient"),
                                          concluded("finite", "finite"),
                                          concluded("changed", "contain", "changed"),
                                          concluded("changed_lately", "contain", "changed"),
                                          concluded("moved", "contain"),
                                          known("noticeable"),
                                          concluded("dtype", "dtype"),
                                          concluded("gradient_dtype_same", "dtype", "gradient"),
                                          concluded("training", "mode"),
                                          concluded("tied", "alias"),
                                          concluded("copied", "alias"),
                                          concluded("repeated", "alias"),
                                          concluded("as_loaded", "checkpoint"),
                                          concluded("master_wide", "dtype"),
                                          concluded("twin_held", "coverage"),
                                          known("called"),
                                          asked("leaf"),
                                          asked("first"),
                                          asked("decays"),
                                          known("lr_zero"),
                                          known("skipped"),
                                          known("backward"),
                                          asked("had_grad"),
                                          asked("module"),
                                          asked("attr"),
                                          asked("dims"),
                                          asked("optimizer"),
                                          asked("several"),
                                          own("name")};
static_assert(kParameterColumns.size() == parameter::columns);

constexpr std::array kOptimizerColumns = {asked("type"),
                                          meaning("strangers", "coverage"),
                                          concluded("holds_all_trainable", "coverage"),
                                          concluded("holds_trainable", "coverage"),
                                          concluded("changes_some", "contain"),
                                          concluded("moves_models", "contain"),
                                          concluded("gradient_zero", "contain"),
                                          concluded("finite", "finite"),
                                          concluded("lr_positive", "contain"),
                                          concluded("decays", "coverage"),
                                          concluded("noise_fresh", "distinct"),
                                          concluded("clipped_all", "argument"),
                                          concluded("own_memory", "alias"),
                                          concluded("state_loaded", "checkpoint"),
                                          known("rest_loaded"),
                                          known("skipped"),
                                          concluded("backward_before", "sequence"),
                                          known("several"),
                                          asked("first")};
static_assert(kOptimizerColumns.size() == optimizer::columns);

constexpr std::array kCallColumns = {asked("module"),
                                     meaning("training", "mode"),
                                     known("grad"),
                                     known("autocast"),
                                     asked("dtype"),
                                     concluded("out_is_in", "dtype", "out"),
                                     concluded("out_is_parameter", "dtype", "out"),
                                     concluded("out_is_autocast", "dtype", "out"),
                                     concluded("wants", "coverage"),
                                     known("in_wants"),
                                     known("parameter_wants"),
                                     concluded("dim0_kept", "shape"),
                                     concluded("dim0_equal", "shape"),
                                     concluded("spreads", "shape"),
                                     concluded("batch_where_expected", "shape"),
                                     concluded("drew", "argument"),
                                     own("type")};
static_assert(kCallColumns.size() == call::columns);

constexpr std::array kRootColumns = {meaning("training", "mode"),
                                     known("grad"),
                                     concluded("uniform", "mode"),
                                     concluded("mode_shows", "mode"),
                                     concluded("dim0_equal", "shape"),
                                     concluded("trained_before", "sequence"),
                                     concluded("train_called", "sequence"),
                                     concluded("drew", "argument"),
                                     concluded("wants", "coverage"),
                                     known("several"),
                                     asked("module"),
                                     own("type")};
static_assert(kRootColumns.size() == root::columns);

constexpr std::array kRandomColumns = {asked("function"),
                                       concluded("on", "argument"),
                                       concluded("p_same", "argument"),
                                       concluded("draws_same", "output"),
                                       known("module_training"),
                                       known("grad"),
                                       known("again"),
                                       known("frozen")};
static_assert(kRandomColumns.size() == random::columns);

constexpr std::array kBackwardColumns = {concluded("reaches_step", "contain"),
                                         concluded("training", "mode"),
                                         concluded("wants", "coverage"),
                                         concluded("finite", "finite"),
                                         concluded("forward_before", "sequence"),
                                         concluded("stale", "sequence"),
                                         known("several"),
                                         known("accumulates"),
                                         known("masters")};
static_assert(kBackwardColumns.size() == backward::columns);

constexpr std::array kSaveColumns = {concluded("has_all", "checkpoint", "same"),
                                     concluded("has_trained", "checkpoint", "same"),
                                     concluded("equals_live", "checkpoint", "same"),
                                     concluded("mixed", "checkpoint", "same"), known("some")};
static_assert(kSaveColumns.size() == save::columns);

constexpr std::array kLoadColumns = {asked("type"),
                                     concluded("complete", "checkpoint", "names"),
                                     concluded("nothing_unexpected", "checkpoint", "names"),
                                     concluded("fills_some", "checkpoint", "names"),
                                     concluded("names_match", "checkpoint", "names"),
                                     concluded("equals_given", "checkpoint"),
                                     concluded("given_is_other", "checkpoint")};
static_assert(kLoadColumns.size() == load::columns);

constexpr std::array kEpochColumns = {concluded("complete", "distinct"),
                                      concluded("samples_distinct", "distinct"),
                                      concluded("apart", "distinct"),
                                      concluded("ends_are_targets", "argument"),
                                      concluded("new_order", "distinct"),
                                      known("shuffled"),
                                      known("distributed"),
                                      known("workers"),
                                      asked("sampler"),
                                      known("first"),
                                      meaning("ended", "distinct"),
                                      concluded("set_epoch", "sequence"),
                                      concluded("as_long", "distinct")};
static_assert(kEpochColumns.size() == epoch::columns);

constexpr std::array kRankBatchesColumns = {concluded("disjoint", "distinct"), known("replicas"),
                                            known("distributed"), asked("sampler"),
                                            concluded("same_shapes", "shape")};
static_assert(kRankBatchesColumns.size() == rank_batches::columns);

constexpr std::array kRankParametersColumns = {concluded("equal", "rank_equal", "equal"),
                                               known("was_equal"),
                                               known("began_equal"),
                                               meaning("gradient_equal", "rank_equal", "equal"),
                                               known("gradient_was_equal"),
                                               concluded("has_grad_alike", "rank_equal", "equal"),
                                               known("constant"),
                                               concluded("same_shape", "shape"),
                                               known("split"),
                                               known("reduced"),
                                               known("wrapped"),
                                               known("placed"),
                                               asked("module"),
                                               asked("attr"),
                                               asked("dims"),
                                               known("requires_grad"),
                                               known("held"),
                                               known("finite")};
static_assert(kRankParametersColumns.size() == rank_parameters::columns);

constexpr std::array kRankCallsColumns = {asked("module"),
                                          concluded("same_shape", "shape"),
                                          concluded("same_mode", "mode"),
                                          known("training"),
                                          known("grad"),
                                          own("type")};
static_assert(kRankCallsColumns.size() == rank_calls::columns);

constexpr std::array kCollectiveColumns = {asked("function"),
                                           concluded("same_call", "rank_equal"),
                                           concluded("same_shape", "shape"),
                                           concluded("same_dtype", "dtype"),
                                           concluded("left_equal", "rank_equal"),
                                           known("grouped")};
static_assert(kCollectiveColumns.size() == collective::columns);

constexpr std::array kP2pColumns = {concluded("read_is_sent", "rank_equal"),
                                    concluded("same_shape", "shape"),
                                    concluded("same_dtype", "dtype")};
static_assert(kP2pColumns.size() == p2p::columns);

constexpr std::array kInitColumns = {asked("function"),
                                     concluded("filled_once", "distinct", "fills"),
                                     concluded("fills_le2", "distinct", "fills"),
                                     concluded("after_load", "sequence"),
                                     asked("module"),
                                     asked("attr")};
static_assert(kInitColumns.size() == init::columns);

constexpr std::array kBufferColumns = {concluded("changed", "contain"),
                                       concluded("finite", "finite"),
                                       concluded("slow", "range"),
                                       meaning("training", "mode"),
                                       known("called"),
                                       known("called_in_training"),
                                       known("called_for_gradients"),
                                       known("frozen"),
                                       known("still"),
                                       known("wants"),
                                       asked("module"),
                                       asked("attr")};
static_assert(kBufferColumns.size() == buffer::columns);

constexpr std::array kLossColumns = {concluded("finite", "finite"), concluded("repeats", "contain"),
                                     known("several")};
static_assert(kLossColumns.size() == loss::columns);

constexpr std::array kArgumentColumns = {own("function"), own("output"), own("argument"),
                                         concluded("relation", "output")};
static_assert(kArgumentColumns.size() == argument::columns);

constexpr std::array kToldColumns = {own("name"), concluded("holds", "told")};
static_assert(kToldColumns.size() == told::columns);

constexpr std::array kCriterionColumns = {asked("function"),
                                          concluded("fits", "argument"),
                                          concluded("spreads", "shape"),
                                          concluded("layers_cast", "dtype"),
                                          concluded("wide", "dtype"),
                                          concluded("target_wants", "argument"),
                                          known("autocast"),
                                          known("grad")};
static_assert(kCriterionColumns.size() == criterion::columns);

constexpr std::array kRankStepsColumns = {concluded("same_lr", "rank_equal"),
                                          concluded("same_clip", "rank_equal"),
                                          concluded("draws_apart", "distinct"), known("together")};
static_assert(kRankStepsColumns.size() == rank_steps::columns);

}  // namespace

// In call_sequence.cc, which makes the columns of its calls.
std::span<const ViewColumn> sequence_columns();

std::span<const RuleView> views() {
  // The order is that of ViewNumber.
  static const RuleView kViews[] = {
      {"parameter", "parameter at an optimizer's step", kParameterColumns},
      {"optimizer", "optimizer's step", kOptimizerColumns},
      {"call", "module's call", kCallColumns, call::module},
      {"root", "call of a root module", kRootColumns},
      {"random", "call of a dropout", kRandomColumns},
      {"sequence", "call of the library", sequence_columns(), 0},
      {"backward", "backward pass", kBackwardColumns},
      {"save", "checkpoint that is saved", kSaveColumns},
      {"load", "load_state_dict", kLoadColumns},
      {"epoch", "pass over a loader", kEpochColumns},
      {.name = "rank_batches",
       .subject = "batch on several ranks",
       .columns = kRankBatchesColumns,
       .across_ranks = true},
      {.name = "rank_parameters",
       .subject = "parameter on all ranks",
       .columns = kRankParametersColumns,
       .across_ranks = true},
      {.name = "rank_calls",
       .subject = "module's call on several ranks",
       .columns = kRankCallsColumns,
       .across_ranks = true},
      {.name = "collective",
       .subject = "collective",
       .columns = kCollectiveColumns,
       .across_ranks = true},
      {.name = "p2p",
       .subject = "tensor that one rank sends to another",
       .columns = kP2pColumns,
       .across_ranks = true},
      {"init", "parameter that is initialised", kInitColumns},
      {"buffer", "buffer at an optimizer's step", kBufferColumns},
      {"loss", "loss", kLossColumns},
      {"argument", "call of a function of the program", kArgumentColumns, argument::function},
      {"told", "opguard.invariant of the program", kToldColumns, told::name},
      {"criterion", "loss function's call", kCriterionColumns, criterion::function},
      {.name = "rank_steps",
       .subject = "optimizer's step on all ranks",
       .columns = kRankStepsColumns,
       .across_ranks = true},
  };
  return kViews;
}

int view_number(std::string_view name) {
  auto all = views();
  auto it = std::find_if(all.begin(), all.end(), [&](const RuleView& v) { return v.name == name; });
  return it == all.end() ? -1 : static_cast<int>(it - all.begin());
}

int column_number(const RuleView& view, std::string_view name) {
  auto it = std::find_if(view.columns.begin(), view.columns.end(),
                         [&](const ViewColumn& c) { return c.name == name; });
  return it == view.columns.end() ? -1 : static_cast<int>(it - view.columns.begin());
}

}  // namespace opguard
