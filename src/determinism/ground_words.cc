// What a finding says, in English. Nothing is decided here.
//
//   {generator, drawn_unseeded, numpy, names {rand}, through torchvision}
//       "drawn from without a seed by rand(), through torchvision"
//   {flag, changed, names {True, False}, numbers {2}}
//       "changed in step 2: True, then False"
//
// No full stop, and no place: the table puts who has set it and where behind these words. Names
// come from the program and may hold anything; the table makes them safe to show.
//
// Counterexample: a ground whose words depend on the subject is no case of plain_words(). It has a
// function of its own above.
#include "determinism/words.h"
#include "support/text.h"

namespace opguard {
namespace {

std::string listed(const std::vector<std::string>& names, const std::string& between = ", ") {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : between) + name;
  return text;
}

// A finding that lacks what its ground promises is told with gaps, and stops nothing.
std::string name_at(const Finding& finding, size_t i) {
  return i < finding.names.size() ? finding.names[i] : "";
}
int64_t number_at(const Finding& finding, size_t i) {
  return i < finding.numbers.size() ? finding.numbers[i] : 0;
}
std::string step_at(const Finding& finding, size_t i) {
  return "step " + std::to_string(number_at(finding, i));
}

std::string drawn(const Finding& finding) {
  const std::string call = name_at(finding, 0);
  const std::string through =
      finding.place.through.empty() ? "" : ", through " + finding.place.through;
  if (call.empty()) return "drawn from without a seed, at a place that was not seen";
  return "drawn from without a seed by " + call + "()" + through;
}

std::string set_words(const Finding& finding) {
  switch (finding.subject) {
    case Subject::generator:
      return "seeded with " + finding.value;
    case Subject::loader:
      return finding.name + ": the same order in two runs";
    case Subject::group:
      return finding.name + ", " + counted(static_cast<uint64_t>(number_at(finding, 0)), "rank");
    case Subject::compile:
      return "kernels are not chosen by their time";
    default:
      return finding.value;
  }
}

std::string default_words(const Finding& finding) {
  switch (finding.subject) {
    case Subject::compile:
      return "no tuning by time was asked for; kernels come from the cache of the compiler";
    case Subject::buckets:
      return "buckets of " + finding.value + " MiB in the order of the parameters; " +
             listed(finding.names);
    case Subject::layout:
      return counted(static_cast<uint64_t>(number_at(finding, 0)), "rank") +
             (finding.names.empty() ? "" : ": " + listed(finding.names)) +
             "; against another layout: opguard diff --tolerance, or --simulate";
    default:
      return finding.value;
  }
}

std::string unused_words(const Finding& finding) {
  switch (finding.subject) {
    case Subject::generator:
      return "not seeded, and not drawn from";
    case Subject::cuda:
      return "no CUDA in this run: the switches of cuDNN and cuBLAS are as the library has them";
    case Subject::operators:
      return "every operator that ran has a deterministic kernel";
    case Subject::group:
      return "no process group";
    case Subject::no_resume:
      return "no optimizer's state was restored";
    case Subject::layout:
      return "one process" + (finding.names.empty() ? "" : ": " + listed(finding.names));
    default:
      return "not in use";
  }
}

std::string unset_words(const Finding& finding) {
  if (finding.subject == Subject::hash_order)
    return "not fixed: the order of a set of strings is another in each run";
  return "not set";
}

std::string time_words(const Finding& finding) {
  if (finding.subject != Subject::compile)
    return finding.value + ": kernels are chosen by their time";
  if (finding.name == "triton.autotune")
    return "configurations of " + counted(static_cast<uint64_t>(number_at(finding, 0)), "kernel") +
           " are chosen by their time";
  return (finding.value.empty() ? "" : finding.value + ": ") +
         std::string("kernels are chosen by their time");
}

std::string no_kernel_words(const Finding& finding) {
  std::string text = "has no deterministic kernel";
  for (const std::string& name : finding.names) {
    if (name == "backward") text += ", in the backward pass begun";
    if (name == "stopped") text += ", and stopped the program";
  }
  return text;
}

std::string missing_words(const Finding& finding) {
  if (finding.name == "model") return "not restored, while an optimizer's state was";
  if (finding.name.starts_with("generator")) return "not restored, and drawn from since the resume";
  return "not restored: " + listed(finding.names);
}

// "rank 0: 3, rank 1: 4"
std::string by_rank(const Finding& finding) {
  std::string text;
  for (size_t rank = 0; rank < finding.names.size(); ++rank)
    text += (rank ? ", rank " : "rank ") + std::to_string(rank) + ": " + finding.names[rank];
  return text;
}

// Grounds that say the same of whatever they are about.
std::string plain_words(const Finding& finding) {
  switch (finding.ground) {
    case Ground::seeded_by_system:
      return "seeded by the system: " + name_at(finding, 0) + "() without a number";
    case Ground::seed_differs:
      return "seeded with another number in each run: " + finding.value + ", then " +
             name_at(finding, 0);
    case Ground::seeded_again:
      return "seeded again with " + finding.value + " in " + step_at(finding, 0) +
             ": its numbers repeat";
    case Ground::seeded_anew:
      return "seeded anew with " + finding.value + " in " + step_at(finding, 0);
    case Ground::from_system:
      return number_at(finding, 0) ? "a loader's worker takes numbers of the operating system"
                                   : "numbers of the operating system, other ones in each run";
    case Ground::too_late:
      return finding.value + ", set too late: what reads it has begun";
    case Ground::changed:
      return "changed in " + step_at(finding, 0) + ": " + name_at(finding, 0) + ", then " +
             name_at(finding, 1);
    case Ground::follows_torch:
      return finding.name + ": its order follows torch's generator";
    case Ground::unseeded_order:
      return finding.name + ": its order follows torch's generator, which has no seed";
    case Ground::own_seed:
      return finding.name + ": a generator of its own, seed " + name_at(finding, 0);
    case Ground::in_order:
      return finding.name + ": always the same order";
    case Ground::order_differs:
      return finding.subject == Subject::buckets
                 ? "other buckets in two runs: gradients arrive in another order"
                 : finding.name + ": two runs took the samples in another order";
    case Ground::batches_differ:
      return finding.name + ": two runs took the same samples and made other batches of them";
    case Ground::same_in_workers:
      return "each of " + std::to_string(number_at(finding, 0)) +
             " workers draws the same numbers from the data set's " + listed(finding.names);
    case Ground::numpy_in_workers:
      return "this torch does not seed numpy in workers: all " +
             std::to_string(number_at(finding, 0)) + " draw the same numbers";
    case Ground::workers_seeded:
      return counted(static_cast<uint64_t>(number_at(finding, 0)), "worker") +
             ", seeded by the loader";
    case Ground::epoch_stays:
      return "set_epoch is not called: " + std::to_string(number_at(finding, 0)) +
             " passes, the same order in each";
    case Ground::epoch_unsaid:
      return "no source of the program calls set_epoch: each epoch has the order of the first";
    case Ground::epoch_unseen:
      return "set_epoch was not called before the first pass; --steps for more than an epoch tells";
    case Ground::seeded_after:
      return "not restored; seeded with " + finding.value + " after the resume";
    case Ground::not_written:
      return "the checkpoint lacks " + listed(finding.names);
    case Ground::written_whole:
      return "the checkpoint holds all that is in use";
    case Ground::skipped:
      return "batches passed over before the first backward pass: " +
             std::to_string(number_at(finding, 0));
    case Ground::rebuilt:
      return "buckets of " + finding.value +
             " MiB, made anew in the order in which gradients arrive; " + listed(finding.names);
    case Ground::fixed_order:
      return finding.name + ", " + counted(static_cast<uint64_t>(number_at(finding, 0)), "rank") +
             ": it sums in the order of the ranks";
    default:
      return "";
  }
}

}  // namespace

// Never empty: a test goes through all grounds.
std::string words_of(const Finding& finding) {
  switch (finding.ground) {
    case Ground::set:
      return set_words(finding);
    case Ground::by_default:
      return default_words(finding);
    case Ground::unused:
      return unused_words(finding);
    case Ground::unset:
      return unset_words(finding);
    case Ground::drawn_unseeded:
      return drawn(finding);
    case Ground::by_time:
      return time_words(finding);
    case Ground::no_kernel:
      return no_kernel_words(finding);
    case Ground::missing:
      return missing_words(finding);
    case Ground::asked_again:
      return finding.names.empty() ? "restored" : "restored: " + listed(finding.names);
    case Ground::ranks_differ:
      return (finding.subject == Subject::rank_seeds ? "" : "ranks differ: ") + by_rank(finding);
    case Ground::ranks_agree:
      return "all ranks have " + name_at(finding, 0);
    case Ground::epoch_set:
      return finding.subject == Subject::position
                 ? "the sampler is in a later epoch"
                 : "set_epoch is called; passes seen: " + std::to_string(number_at(finding, 0));
    case Ground::unknown:
      return finding.subject == Subject::position
                 ? "whether the loader goes on where it was: not seen"
                 : finding.name + ": an order of the program's own";
    default:
      return plain_words(finding);
  }
}

}  // namespace opguard
