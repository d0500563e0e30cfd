// The digests of one run are kept in three tables. Each is as small as the asking run allows.
//
//   lists_        sums of events' lists, by dtype      gradients of 3 parameters: 1 entry
//   single_       each value's digest, by dtype        if several ranks ask: a sum of theirs
//   repeatable_   float32 [1, 8]: its values           if the other run has a float32 [4, 8]
//
// Digests are added modulo 2^64, so k times a digest wraps as a sum of k equal ones does.
//
// Counterexample: a list across two events. Only what one event lists together is added up, else
// any sum could be met by chance.
#include "align/values/compositions.h"

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "align/values/digests.h"

namespace opguard {
namespace {

std::vector<int64_t> without_leading_ones(const std::vector<int64_t>& shape) {
  auto first = std::find_if(shape.begin(), shape.end(), [](int64_t n) { return n != 1; });
  return {first, shape.end()};
}

// "grad:layers.0.weight" -> "grad:", "arg0[3]" -> "arg0[", "grad12" -> "grad".
std::string_view list_of(std::string_view name) {
  if (size_t end = name.find_first_of(":["); end != name.npos) return name.substr(0, end + 1);
  return name.substr(0, name.find_last_not_of("0123456789") + 1);
}

uint64_t mixed(uint64_t so_far, uint64_t next) {
  so_far = (so_far ^ next) * 0x9e3779b97f4a7c15ull;
  return so_far ^ so_far >> 32;
}

}  // namespace

// repetitions({1, 8}, {4, 8}) is 4, and of {8} in {4, 8} as well. Of {4, 8} in {4, 8} it is 0: the
// same shape repeats nothing.
uint64_t repetitions(const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  if (to.size() < from.size() || from == to) return 0;
  uint64_t times = 1;
  for (size_t d = 0; d < to.size(); ++d) {
    const int64_t have = d < from.size() ? from[from.size() - 1 - d] : 1;
    const int64_t want = to[to.size() - 1 - d];
    if (have == want) continue;
    if (have != 1 || want < 1) return 0;
    times *= uint64_t(want);
  }
  return times;
}

Compositions::Compositions(const Run& held, const Run& asking) {
  // Only a sum over ranks is asked for as the elements of one value.
  const bool several_ranks = asking.processes.size() > 1;
  std::set<Type> asked;
  for (const ProcessLog& log : asking.processes)
    for (const Meta& meta : log.metas) asked.insert({meta.dtype, without_leading_ones(meta.shape)});
  for (const ProcessLog& log : held.processes) {
    // Most shapes are in no such relation: their values need not be kept.
    std::vector<std::vector<uint64_t>*> repeatable;
    std::vector<Digests*> single;
    for (const Meta& meta : log.metas) {
      const Type type{meta.dtype, without_leading_ones(meta.shape)};
      const bool related = std::any_of(asked.begin(), asked.end(), [&](const Type& other) {
        return other.first == type.first && (repetitions(type.second, other.second) > 1 ||
                                             repetitions(other.second, type.second) > 1);
      });
      repeatable.push_back(related ? &repeatable_[type] : nullptr);
      single.push_back(&single_[meta.dtype]);
    }
    std::vector<uint32_t> lists;  // by string: one that stands for the name of its list
    std::unordered_map<std::string_view, uint32_t> numbers;
    for (const std::string& text : log.strings)
      lists.push_back(numbers.try_emplace(list_of(text), uint32_t(numbers.size())).first->second);
    for (size_t e = 0; e < log.events.size(); ++e) {
      const Event event = log.events[e];
      if (event.kind == EventKind::state) continue;
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots) {
        if (slot.meta >= single.size() || !has_elements(slot)) continue;
        if (several_ranks) single[slot.meta]->insert(slot.digest);
        if (repeatable[slot.meta]) repeatable[slot.meta]->push_back(slot.digest);
      }
      add(log, slots, lists);
    }
  }
  for (auto& [type, values] : repeatable_) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
}

// Most events list nothing, and to find that out must cost next to nothing.
bool Compositions::lists_any(const EventSlots& slots, const std::vector<uint32_t>& lists) {
  constexpr size_t kFew = 16;  // not worth sorting
  parts_.clear();
  for (uint32_t s = 0; s < slots.size(); ++s)
    if (slots[s].name < lists.size())
      parts_.push_back({4 * uint64_t{lists[slots[s].name]} + uint64_t(slots[s].kind), s});
  if (parts_.size() > kFew) return true;
  for (size_t i = 1; i < parts_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (parts_[i].list == parts_[j].list) return true;
  return false;
}

// A list may hold tensors of several types. Each type has a sum of its own, and a tensor without a
// digest spoils that sum alone.
void Compositions::add(const ProcessLog& log, const EventSlots& slots,
                       const std::vector<uint32_t>& lists) {
  if (!lists_any(slots, lists)) return;
  std::stable_sort(parts_.begin(), parts_.end(),
                   [](const Part& x, const Part& y) { return x.list < y.list; });
  for (size_t from = 0, to = 0; from < parts_.size(); from = to) {
    while (to < parts_.size() && parts_[to].list == parts_[from].list) ++to;
    if (to - from < 2) continue;
    std::map<std::string_view, std::pair<uint64_t, bool>> sums;  // by dtype: sum, known
    for (size_t part = from; part < to; ++part) {
      const Slot& slot = slots[parts_[part].place];
      if (slot.meta >= log.metas.size()) continue;
      auto& [sum, known] = sums.try_emplace(log.metas[slot.meta].dtype, 0, true).first->second;
      sum += slot.digest;
      known &= slot.has_digest;
    }
    for (const auto& [dtype, sum] : sums)
      if (sum.second && sum.first != 0) lists_[std::string(dtype)].insert(sum.first);
  }
}

bool Compositions::holds_list(const std::string& dtype, uint64_t digest) const {
  auto lists = lists_.find(dtype);
  return lists != lists_.end() && lists->second.contains(digest);
}

bool Compositions::holds_elements(const std::string& dtype, uint64_t digest) const {
  auto single = single_.find(dtype);
  return single != single_.end() && single->second.contains(digest);
}

// Both ways. The asked value may be the short one: then its multiple is looked for. Or it is the
// long one: then multiples of the known values are made once for its shape, and looked up.
bool Compositions::holds_repeated(const Meta& meta, uint64_t digest) const {
  const std::vector<int64_t> shape = without_leading_ones(meta.shape);
  for (auto at = repeatable_.lower_bound({meta.dtype, {}});
       at != repeatable_.end() && at->first.first == meta.dtype; ++at) {
    const auto& [type, values] = *at;
    if (const uint64_t times = repetitions(shape, type.second); times > 1)
      if (std::binary_search(values.begin(), values.end(), times * digest)) return true;
    if (const uint64_t times = repetitions(type.second, shape); times > 1) {
      auto [repeated, fresh] = repeated_.try_emplace({type, shape});
      if (fresh)
        for (const uint64_t value : values) repeated->second.insert(times * value);
      if (repeated->second.contains(digest)) return true;
    }
  }
  return false;
}

// What names an execution on every rank: texts, since each log numbers its strings by itself.
uint64_t RankSums::what(const ProcessLog& log, const Event& event) {
  const std::hash<std::string_view> text;
  uint64_t number = mixed(text(log.text(event.boundary)), text(log.text(event.node)));
  number = mixed(number, uint64_t(event.kind) << 8 | uint64_t(event.phase));
  return mixed(number, event.occurrence);
}

const RankSums::Executions& RankSums::executions(int32_t process) const {
  auto [entry, fresh] = executions_.try_emplace(process);
  const ProcessLog& log = run_.processes[process];
  for (uint32_t e = 0; fresh && e < log.events.size(); ++e)
    entry->second.try_emplace(what(log, log.events[e]), e);
  return entry->second;
}

std::optional<uint64_t> RankSums::of(const EventRef& ref, const Slot& slot) const {
  if (run_.processes.size() < 2 || !slot.has_digest) return {};
  const ProcessLog& log = run_.processes[ref.process];
  const uint64_t wanted = what(log, log.events[ref.event]);
  uint64_t sum = slot.digest;
  for (int32_t p = 0; p < int32_t(run_.processes.size()); ++p) {
    if (p == ref.process) continue;
    auto found = executions(p).find(wanted);
    if (found == executions(p).end()) return {};
    const ProcessLog& other = run_.processes[p];
    const EventSlots slots = other.slots_of(other.events[found->second]);
    const auto same = std::find_if(slots.begin(), slots.end(), [&](const Slot& theirs) {
      return theirs.kind == slot.kind && theirs.index == slot.index;
    });
    if (same == slots.end() || !same->has_digest) return {};
    sum += same->digest;
  }
  return sum;
}

}  // namespace opguard
