// Two sorted tables: the keys that were held, and who made each first in each process.
//
//   held     04a1 04a1 77c0 ...               sorted, each once
//   makers   (04a1, process 0, event 12)      by key, process, event: the first of each process
//            (04a1, process 1, event 11)
//
// Both are filled by one pass in the log's order. Most repetitions (a weight read by each
// micro-batch) are dropped before anything is sorted.
//
// Counterexample: a folded key is 64 bits. Two values of one key would be taken for one.
//
// The cost: linear in the run's slots, besides the sorting, which is by the bits of the hash.
#include "align/values/value_index.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

namespace opguard {
namespace {

uint64_t scramble(uint64_t x) {  // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t hash_text(std::string_view text) { return std::hash<std::string_view>{}(text); }

}  // namespace

bool has_value(const Slot& slot) { return !(slot.flags & (kUnreadable | kUninitialised)); }

ValueKey value_key(uint64_t flat, uint64_t elements, std::string_view dtype) {
  // The row sum M depends on the shape, so it has no part in the name.
  return {flat, scramble(hash_text(dtype) ^ scramble(elements))};
}

ValueKey value_key(const ProcessLog& log, const Slot& slot) {
  const Meta* meta = slot.meta < log.metas.size() ? &log.metas[slot.meta] : nullptr;
  if (!meta) return {slot.flat, scramble(scramble(1))};
  uint64_t elements = 1;
  for (int64_t n : meta->shape) elements *= uint64_t(n);
  return value_key(slot.flat, elements, meta->dtype);
}

namespace {

uint64_t folded(const ValueKey& key) { return scramble(key.lo) ^ key.hi; }

// Lets most repetitions of a number that was there lately not pass.
class Repetitions {
 public:
  bool pass(uint64_t number) {
    uint64_t& last = recent_[number % recent_.size()];
    return std::exchange(last, number) != number;
  }

 private:
  std::vector<uint64_t> recent_ = std::vector<uint64_t>(1 << 13, 0);
};

// Sorts by `less`, which looks at the key first. Keys are hashes: dealt out by their bits from
// `shift` down, in place, few are left to be sorted together.
template <typename Item, typename Key, typename Less>
void sort_by_key(std::span<Item> items, Key key, Less less, int shift = 64) {
  constexpr int kMostBits = 10, kFew = 5;
  const int bits = std::min({kMostBits, shift, int(std::bit_width(items.size())) - kFew});
  if (bits < 2) return std::sort(items.begin(), items.end(), less);
  const size_t parts = size_t{1} << bits;
  shift -= bits;
  auto part = [&](const Item& item) { return size_t(key(item) >> shift) & (parts - 1); };
  std::array<size_t, (1 << kMostBits) + 1> end{};
  for (const Item& item : items) ++end[part(item) + 1];
  for (size_t p = 0; p < parts; ++p) end[p + 1] += end[p];
  std::array<size_t, 1 << kMostBits> next;
  std::copy_n(end.begin(), parts, next.begin());
  for (size_t p = 0; p < parts; ++p)
    while (next[p] < end[p + 1]) {
      Item& item = items[next[p]];
      const size_t home = part(item);
      if (home == p)
        ++next[p];
      else
        std::swap(item, items[next[home]++]);
    }
  for (size_t p = 0; p < parts; ++p)
    sort_by_key(items.subspan(end[p], end[p + 1] - end[p]), key, less, shift);
}

// value_key of the slots of one log, its metas looked at once.
class EventKeys {
 public:
  explicit EventKeys(const ProcessLog& log) {
    Slot slot;
    for (slot.meta = 0; slot.meta < log.metas.size(); ++slot.meta)
      types_.push_back(value_key(log, slot).hi);
    slot.meta = kNone;
    none_ = value_key(log, slot).hi;
  }
  ValueKey of(const Slot& slot) const {
    return {slot.flat, slot.meta < types_.size() ? types_[slot.meta] : none_};
  }

 private:
  std::vector<uint64_t> types_;
  uint64_t none_ = 0;
};

}  // namespace

// State events are no makers: they show what lies somewhere, as `<parameters>` does.
const ValueIndex::Values& ValueIndex::values() const {
  if (values_) return *values_;
  Values& all = values_.emplace();
  Repetitions held;
  for (size_t p = 0; p < run_.processes.size(); ++p) {
    const ProcessLog& log = run_.processes[p];
    const EventKeys keys(log);
    Repetitions made;
    for (size_t e = 0; e < log.events.size(); ++e) {
      const Event event = log.events[e];
      if (event.kind == EventKind::state) continue;
      const EventSlots slots = log.slots_of(event);
      for (uint32_t s = 0; s < slots.size(); ++s) {
        const Slot& slot = slots[s];
        if (!has_value(slot)) continue;
        const uint64_t key = folded(keys.of(slot));
        if (held.pass(key)) all.held.push_back(key);
        if (slot.kind != SlotKind::in && made.pass(key))
          all.makers.push_back({key, int32_t(p), uint32_t(e), s});
      }
    }
  }
  sort_by_key(std::span(all.held), [](uint64_t key) { return key; }, std::less<>());
  all.held.erase(std::unique(all.held.begin(), all.held.end()), all.held.end());
  sort_by_key(
      std::span(all.makers), [](const Maker& maker) { return maker.key; },
      [](const Maker& x, const Maker& y) {
        return std::tie(x.key, x.process, x.event, x.slot) <
               std::tie(y.key, y.process, y.event, y.slot);
      });
  // Later makers of the same process are never asked for: events are in order of completion.
  all.makers.erase(std::unique(all.makers.begin(), all.makers.end(),
                               [](const Maker& x, const Maker& y) {
                                 return x.key == y.key && x.process == y.process;
                               }),
                   all.makers.end());
  return all;
}

SlotRef ValueIndex::made_by(const Maker& maker) const {
  const EventRef ref{maker.process, maker.event};
  return {ref, event(ref).first_slot + maker.slot};
}

bool ValueIndex::holds(const ValueKey& key) const {
  const std::vector<uint64_t>& held = values().held;
  return std::binary_search(held.begin(), held.end(), folded(key));
}

const Compositions& ValueIndex::compositions(const Run& asking) const {
  if (!compositions_) compositions_.emplace(run_, asking);
  return *compositions_;
}

const Collectives& ValueIndex::collectives() const {
  if (!collectives_) collectives_.emplace(run_);
  return *collectives_;
}

// The own process wins whenever it made the value before. Another's operator may end while the
// consumer still runs: a receiver waits for it.
SlotRef ValueIndex::producer(const ValueKey& key, const EventRef& consumer, bool inclusive) const {
  const std::vector<Maker>& makers = values().makers;
  const uint64_t wanted = folded(key);
  auto at = std::lower_bound(makers.begin(), makers.end(), wanted,
                             [](const Maker& maker, uint64_t k) { return maker.key < k; });
  const Maker* elsewhere = nullptr;
  uint64_t earliest = 0;
  for (; at != makers.end() && at->key == wanted; ++at) {
    if (at->process == consumer.process) {
      if (at->event < consumer.event + (inclusive ? 1 : 0)) return made_by(*at);
      continue;
    }
    const uint64_t end = event({at->process, at->event}).end_ns;
    if (end <= event(consumer).end_ns && (!elsewhere || end < earliest)) {
      elsewhere = &*at;
      earliest = end;
    }
  }
  return elsewhere ? made_by(*elsewhere) : SlotRef{};
}

}  // namespace opguard
