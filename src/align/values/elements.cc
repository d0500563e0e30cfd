// Sums of digests over a step's lists, of one rank and of all. A list is "<before>", "<after>",
// "<gradients>" or a kind of state, as "exp_avg".
//
//   rank 0   w 71   b 30      own 101   all 202   distinct 101     both ranks hold copies
//   rank 1   w 71   b 30
//   rank 0   flat 60          own 60    all 101   distinct 101     each holds a share
//   rank 1   flat 41
//
// Ranks are brought together by ordinal: the second process that a rank started belongs to the
// second of each other rank. A program that restarts itself begins new processes on all of them.
//
// The cost: the sums of all ranks are made once a step, and kept by ordinal and step.
#include "align/values/elements.h"

#include <array>
#include <tuple>

namespace opguard {
namespace {

// The lists of a step, each by a name; states by theirs.
const std::string kBefore = "<before>", kAfter = "<after>", kGradients = "<gradients>";

uint64_t element_count(const Meta& meta) {
  uint64_t count = 1;
  for (const int64_t n : meta.shape) count *= uint64_t(n);
  return count;
}

// A tensor without elements needs no digest to be known.
void add_slot(const ProcessLog& log, const Slot& slot, ElementSum& sum) {
  const uint64_t count = element_count(log.metas[slot.meta]);
  sum.known &= slot.has_digest || count == 0;
  sum.digest += slot.digest;
  sum.elements += count;
}

// Visits (list, value) for all of a step.
template <typename Visit>
void for_each(const ProcessLog& log, const StepSets& step, Visit visit) {
  for (const auto& [list, set] :
       {std::pair(&kBefore, &step.before), std::pair(&kAfter, &step.after),
        std::pair(&kGradients, &step.gradients)})
    for (const HeldValue& held : set->held) visit(*list, held);
  for (const HeldValue& held : step.states.held) visit(state_key(log.text(held.slot.name)), held);
}

// A list that misses a value says so in all sums of it.
void mark_holes(const StepSets& step, std::map<std::string, ElementSum*> sums) {
  for (const auto& [list, set] :
       {std::pair(&kBefore, &step.before), std::pair(&kAfter, &step.after),
        std::pair(&kGradients, &step.gradients)})
    if (auto sum = sums.find(*list); sum != sums.end()) sum->second->known &= set->whole;
  for (auto& [list, sum] : sums)
    if (!list.starts_with('<')) sum->known &= step.states.whole;
}

uint32_t ordinal_of(const Run& run, int32_t process) {
  uint32_t ordinal = 0;
  for (int32_t p = 0; p < process; ++p)
    ordinal += run.processes[p].rank == run.processes[process].rank;
  return ordinal;
}

std::array<const ElementSum*, 3> sums_of(const ElementSums& of) {
  return {&of.own, &of.all, &of.distinct};
}

// Whether this sum of a's is that sum of b's.
bool equal(const ElementSum& a, const ElementSum& b) {
  return a.known && b.known && a.digest == b.digest;
}

std::string text_of(const std::set<std::string>& types) {
  std::string text;
  for (const std::string& type : types) text += (text.empty() ? "" : ", ") + type;
  return text;
}

}  // namespace

std::string state_key(const std::string& name) { return name.substr(name.rfind('.') + 1); }

bool same_elements(const ElementSums& a, const ElementSums& b) {
  for (const ElementSum* of_a : sums_of(a))
    for (const ElementSum* of_b : sums_of(b))
      if (equal(*of_a, *of_b)) return true;
  return a.all.known && b.all.known && a.only_scalars && b.only_scalars && a.scalars == b.scalars;
}

// Some pair of sums must have been equal before the step, in pieces that the step kept. It shows
// that these two sums speak of the same model. Zeros do not show it: their digest is 0 everywhere.
bool other_elements(const StepElements& a, const StepElements& b) {
  if (a.after.dtypes != b.after.dtypes || a.before.dtypes != b.before.dtypes) return false;
  const auto before_a = sums_of(a.before), before_b = sums_of(b.before), after_a = sums_of(a.after),
             after_b = sums_of(b.after);
  bool told = false;
  for (size_t i = 0; i < before_a.size(); ++i)
    for (size_t j = 0; j < before_b.size(); ++j) {
      if (!after_a[i]->known || !after_b[j]->known) return false;
      const bool same_pieces = before_a[i]->elements == after_a[i]->elements &&
                               before_b[j]->elements == after_b[j]->elements;
      told |= same_pieces && before_a[i]->digest != 0 && equal(*before_a[i], *before_b[j]);
    }
  return told && !same_elements(a.after, b.after);
}

Reason why_not(const ElementSums& a, const ElementSums& b) {
  if (!a.all.known || !b.all.known) return {ReasonKind::without_digest};
  if (a.empty() != b.empty()) return {.kind = ReasonKind::shows_none, .side = a.empty() ? 0 : 1};
  if (a.dtypes != b.dtypes)
    return {.kind = ReasonKind::other_types, .names = {text_of(a.dtypes), text_of(b.dtypes)}};
  return {ReasonKind::element_sums_differ};
}

const RunElements::StepSums& RunElements::of_all(int32_t process, size_t k) {
  const uint32_t ordinal = ordinal_of(run_, process);
  auto [entry, fresh] = of_all_.try_emplace({ordinal, k});
  StepSums& sums = entry->second;
  if (!fresh) return sums;
  for (const std::string& list : {kBefore, kAfter, kGradients}) sums[list];
  // What several ranks hold under one name, of one type and shape and value.
  using Copy = std::tuple<std::string, std::string, std::string, std::vector<int64_t>, Fingerprint>;
  std::set<Copy> copies;
  for (int32_t p = 0; p < int32_t(run_.processes.size()); ++p) {
    if (ordinal_of(run_, p) != ordinal || moments_[p].steps() <= k) continue;
    const ProcessLog& log = run_.processes[p];
    const StepSets step = moments_[p].step(k);
    std::set<Copy> own;
    for_each(log, step, [&](const std::string& list, const HeldValue& held) {
      Sums& sum = sums[list];
      const Meta& meta = log.metas[held.slot.meta];
      add_slot(log, held.slot, sum.all);
      const Copy copy{list, log.text(held.slot.name), meta.dtype, meta.shape, held.slot.value};
      if (!copies.contains(copy)) add_slot(log, held.slot, sum.distinct);
      own.insert(copy);
      sum.dtypes.insert(meta.dtype);
      if (element_count(meta) == 1)
        sum.scalars.insert(held.slot.digest);
      else
        sum.only_scalars = false;
    });
    copies.merge(own);
    std::map<std::string, ElementSum*> all, distinct;
    for (auto& [list, sum] : sums) all[list] = &sum.all, distinct[list] = &sum.distinct;
    mark_holes(step, std::move(all));
    mark_holes(step, std::move(distinct));
  }
  return sums;
}

// The sum over this rank alone is no part of what is kept: it is another for each process.
StepElements RunElements::of(int32_t process, size_t k) {
  std::map<std::string, ElementSums> lists;
  for (const auto& [list, sums] : of_all(process, k)) {
    ElementSums& elements = lists[list];
    elements.all = sums.all, elements.distinct = sums.distinct;
    elements.dtypes = sums.dtypes;
    elements.scalars = sums.scalars, elements.only_scalars = sums.only_scalars;
  }
  const ProcessLog& log = run_.processes[process];
  const StepSets step = moments_[process].step(k);
  for_each(log, step, [&](const std::string& list, const HeldValue& held) {
    add_slot(log, held.slot, lists[list].own);
  });
  std::map<std::string, ElementSum*> own;
  for (auto& [list, elements] : lists) own[list] = &elements.own;
  mark_holes(step, std::move(own));
  StepElements found;
  for (auto& [list, elements] : lists)
    (list == kBefore      ? found.before
     : list == kAfter     ? found.after
     : list == kGradients ? found.gradients
                          : found.states[list]) = std::move(elements);
  return found;
}

}  // namespace opguard
