#include "align/value_flow.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>
#include <string_view>
#include <tuple>
#include <utility>

#include "align/flat_groups.h"

namespace opguard {
namespace {

uint64_t scramble(uint64_t x) {  // splitmix64's finaliser
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

uint64_t hash_text(std::string_view text) { return std::hash<std::string_view>{}(text); }

std::string_view last_name(std::string_view callee) {
  size_t dot = callee.rfind('.');
  return dot == std::string_view::npos ? callee : callee.substr(dot + 1);
}

// A tensor that an operator writes over whole: what was there has no part in the result.
bool overwrites(std::string_view callee, std::string_view slot) {
  const std::string_view name = last_name(callee);
  return (name == "copy_" && slot == "self") ||
         (name == "_foreach_copy_" && slot.starts_with("arg0["));
}

// Of events between the begin and the end of `outer`, those of its own thread ran inside it.
bool inside(const Event& outer, const Event& inner) { return inner.thread == outer.thread; }

}  // namespace

bool moves_bytes(std::string_view callee) {
  static constexpr std::array kMovers = {"T",
                                         "[]",
                                         "[]=",
                                         "as_strided",
                                         "broadcast_to",
                                         "cat",
                                         "chunk",
                                         "clone",
                                         "concat",
                                         "contiguous",
                                         "copy_",
                                         "detach",
                                         "expand",
                                         "expand_as",
                                         "flatten",
                                         "flip",
                                         "gather",
                                         "index_select",
                                         "movedim",
                                         "narrow",
                                         "pad",
                                         "permute",
                                         "ravel",
                                         "repeat",
                                         "reshape",
                                         "reshape_as",
                                         "roll",
                                         "select",
                                         "split",
                                         "split_with_sizes",
                                         "squeeze",
                                         "stack",
                                         "swapaxes",
                                         "swapdims",
                                         "t",
                                         "take",
                                         "tensor_split",
                                         "tile",
                                         "transpose",
                                         "unbind",
                                         "unflatten",
                                         "unfold",
                                         "unsqueeze",
                                         "view",
                                         "view_as",
                                         "hstack",
                                         "vstack",
                                         "_foreach_copy_",
                                         "_flatten_dense_tensors",
                                         "_unflatten_dense_tensors",
                                         "repeat_interleave"};
  std::string_view name = last_name(callee);
  return std::find(kMovers.begin(), kMovers.end(), name) != kMovers.end();
}

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
class Keys {
 public:
  explicit Keys(const ProcessLog& log) {
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

const ValueIndex::Values& ValueIndex::values() const {
  if (values_) return *values_;
  Values& all = values_.emplace();
  Repetitions held;
  for (size_t p = 0; p < run_.processes.size(); ++p) {
    const ProcessLog& log = run_.processes[p];
    const Keys keys(log);
    FlatGroups flat_groups(log);
    Repetitions made;
    for (size_t e = 0; e < log.events.size(); ++e) {
      const Event event = log.events[e];
      if (event.kind == EventKind::state) continue;
      for (const ValueKey& flat : flat_groups.of(event))
        if (held.pass(folded(flat))) all.held.push_back(folded(flat));
      const Slot* slots = log.slots.of_event(event.first_slot);
      for (uint32_t s = 0; s < event.slot_count; ++s) {
        const Slot& slot = slots[s];
        if (!has_value(slot)) continue;
        const uint64_t key = folded(keys.of(slot));
        if (held.pass(key)) all.held.push_back(key);
        if (slot.flags & kMask) all.masks.push_back(slot.pattern);
        if (slot.kind != SlotKind::in && made.pass(key))
          all.makers.push_back({key, int32_t(p), uint32_t(e), s});
      }
    }
  }
  sort_by_key(std::span(all.held), [](uint64_t key) { return key; }, std::less<>());
  all.held.erase(std::unique(all.held.begin(), all.held.end()), all.held.end());
  std::sort(all.masks.begin(), all.masks.end());
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

bool ValueIndex::holds_mask(uint64_t pattern) const {
  const std::vector<uint64_t>& masks = values().masks;
  return std::binary_search(masks.begin(), masks.end(), pattern);
}

const Broadcasts& ValueIndex::broadcasts(const Run& asking) const {
  if (!broadcasts_) broadcasts_.emplace(run_, asking);
  return *broadcasts_;
}

const Collectives& ValueIndex::collectives() const {
  if (!collectives_) collectives_.emplace(run_);
  return *collectives_;
}

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

const std::vector<ValueIndex::Block>& ValueIndex::blocks(int32_t process, uint32_t part) const {
  auto [entry, fresh] = blocks_.try_emplace(uint64_t(process) << 32 | part);
  if (!fresh) return entry->second;
  const ProcessLog& log = run_.processes[process];
  const uint64_t end = std::min(log.events.size(), (uint64_t{part} + 1) * kBlocksOf);
  for (uint64_t e = uint64_t{part} * kBlocksOf; e < end; ++e) {
    const Event event = log.events[e];
    const Slot* slots = log.slots.of_event(event.first_slot);
    for (uint32_t s = 0; s < event.slot_count; ++s) {
      const Slot& slot = slots[s];
      if (slot.kind != SlotKind::in && slot.address && slot.size_bytes && has_value(slot))
        entry->second.push_back({slot.address, slot.address + slot.size_bytes, slot.storage,
                                 uint32_t(e), event.first_slot + s});
    }
  }
  return entry->second;
}

ValueIndex::Parts ValueIndex::parts(const EventRef& consumer, const Slot& slot) const {
  constexpr int kReach = 50000;  // blocks looked back; older memory is rarely still in use
  Parts parts;
  if (!slot.address || !slot.size_bytes) return parts;
  std::vector<std::pair<uint64_t, uint64_t>> open = {
      {slot.address, slot.address + slot.size_bytes}};
  int looked_at = 0;
  for (uint32_t part = consumer.event / kBlocksOf + 1; part-- > 0;) {
    const std::vector<Block>& all = blocks(consumer.process, part);
    auto at = std::lower_bound(all.begin(), all.end(), consumer.event,
                               [](const Block& block, uint32_t e) { return block.event < e; });
    while (at != all.begin() && looked_at < kReach && !open.empty()) {
      --at;
      ++looked_at;
      // Freed memory is given out again: what another block left at these addresses is no part.
      if (slot.storage != 0 && at->storage != 0 && at->storage != slot.storage) continue;
      auto lies_on = [&](const std::pair<uint64_t, uint64_t>& extent) {
        return at->end > extent.first && at->begin < extent.second;
      };
      if (std::none_of(open.begin(), open.end(), lies_on)) continue;
      parts.left.push_back({{consumer.process, at->event}, at->slot});
      std::vector<std::pair<uint64_t, uint64_t>> rest;
      for (auto [begin, end] : open) {
        if (!lies_on({begin, end})) {
          rest.push_back({begin, end});
          continue;
        }
        if (begin < at->begin) rest.push_back({begin, at->begin});
        if (at->end < end) rest.push_back({at->end, end});
      }
      open = std::move(rest);
    }
    if (looked_at == kReach || open.empty()) break;
  }
  parts.complete = open.empty();
  return parts;
}

Flow::Flow(const ValueIndex& mine, const ValueIndex& other, FlowOptions options)
    : mine_(mine),
      other_(other),
      options_(std::move(options)),
      discounting_(options_.discounted != nullptr) {
  if (!discounting_) return;
  // In order of completion, so that a layout made from another layout counts as well.
  for (size_t p = 0; p < mine.run().processes.size(); ++p) {
    const ProcessLog& log = mine.run().processes[p];
    for (size_t e = 0; e < log.events.size(); ++e) {
      EventRef ref{int32_t(p), uint32_t(e)};
      if (!options_.discounted(ref)) continue;
      const Event& event = log.events[e];
      for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s)
        if (log.slots[s].kind != SlotKind::in && made_of_known({ref, s}))
          relaid_.insert(value_key(log, log.slots[s]));
    }
  }
}

// Whether an event's result holds nothing but what both runs know.
bool Flow::made_of_known(const SlotRef& made) const {
  const ProcessLog& log = mine_.log(made.event);
  const Event& event = mine_.event(made.event);
  auto known_parts = [&](const SlotRef& ref) {
    ValueIndex::Parts parts = mine_.parts(made.event, mine_.slot(ref));
    return relaid_parts(mine_.slot(ref), parts) && !any_novel(parts);
  };
  if (views_larger_input(made)) return known_parts(made);
  for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s)
    if (log.slots[s].kind == SlotKind::in && novel(made.event, log.slots[s]) &&
        !written_over(made.event, log.slots[s]) && !known_parts({made.event, s}))
      return false;
  return true;
}

std::string_view Flow::callee(const EventRef& ref) const {
  const ProcessLog& log = mine_.log(ref);
  auto location = log.locations.find(std::string(mine_.boundary(ref)));
  return location == log.locations.end() ? std::string_view() : location->second.callee;
}

bool Flow::any_novel(const ValueIndex::Parts& parts) const {
  return std::any_of(parts.left.begin(), parts.left.end(),
                     [&](const SlotRef& part) { return novel(part.event, mine_.slot(part)); });
}

// A result that lies inside a larger input's memory: only what is there matters, not the rest.
bool Flow::views_larger_input(const SlotRef& made) const {
  const Slot& result = mine_.slot(made);
  if (result.kind != SlotKind::out || !result.address || !result.size_bytes) return false;
  const ProcessLog& log = mine_.log(made.event);
  const Event& event = mine_.event(made.event);
  for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
    const Slot& input = log.slots[s];
    if (input.storage != 0 && result.storage != 0 && input.storage != result.storage) continue;
    if (input.kind == SlotKind::in && input.address <= result.address &&
        input.address + input.size_bytes >= result.address + result.size_bytes &&
        input.size_bytes > result.size_bytes)
      return true;
  }
  return false;
}

bool Flow::novel(const EventRef& event, const Slot& slot) const {
  if (!has_value(slot)) return false;
  if (slot.value == Fingerprint{}) return false;  // zeros: every run has them
  ValueKey key = value_key(mine_.log(event), slot);
  if (other_.holds(key) || relaid_.contains(key)) return false;
  // exp() of either constant is zero: the same mask.
  if ((slot.flags & kMask) && other_.holds_mask(slot.pattern)) return false;
  return !repeats_known(event, slot);
}

// The other run's value, repeated over a dimension before it is used or left to broadcasting.
bool Flow::repeats_known(const EventRef& event, const Slot& slot) const {
  const ProcessLog& log = mine_.log(event);
  if (slot.meta >= log.metas.size()) return false;
  return other_.broadcasts(mine_.run()).holds(log.metas[slot.meta], slot.value.h);
}

// What was there before a copy has no part in the result, unless it decides the dtype.
bool Flow::written_over(const EventRef& ref, const Slot& slot) const {
  const ProcessLog& log = mine_.log(ref);
  if (slot.kind != SlotKind::in || !overwrites(callee(ref), log.text(slot.name))) return false;
  const Event event = mine_.event(ref);
  const Slot* slots = log.slots.of_event(event.first_slot);
  return std::any_of(slots, slots + event.slot_count, [&](const Slot& source) {
    return source.kind == SlotKind::in && source.name != slot.name &&
           log.metas[source.meta].dtype == log.metas[slot.meta].dtype;
  });
}

bool Flow::push_novel_inputs(const EventRef& ref, const EventRef& consumer, bool inputs_only,
                             std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(ref);
  const Event& event = mine_.event(ref);
  bool any = false;
  for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
    const Slot& slot = log.slots[s];
    if (inputs_only && slot.kind != SlotKind::in) continue;
    if (!novel(ref, slot)) continue;
    if (written_over(ref, slot)) continue;
    stack.push_back({{ref, s}, consumer});
    any = true;
  }
  return any;
}

// Novel results of events inside this one: the last of them is nearest to its own result.
bool Flow::push_children(const EventRef& ref, std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(ref);
  const Event& event = mine_.event(ref);
  for (uint64_t e = ref.event; e-- > event.begin;) {
    const Event& child = log.events[e];
    if (!inside(event, child) || child.kind == EventKind::loss) continue;
    for (uint64_t s = child.first_slot; s < child.first_slot + child.slot_count; ++s) {
      const Slot& slot = log.slots[s];
      EventRef at{ref.process, uint32_t(e)};
      if (slot.kind == SlotKind::in || !novel(at, slot)) continue;
      stack.push_back({{at, s}, ref});
      return true;
    }
  }
  return false;
}

// A backward node also reads what its forward kept; after a recomputation, what that made.
bool Flow::push_forward(const EventRef& ref, std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(ref);
  const Event& node = mine_.event(ref);
  if (node.kind != EventKind::node || node.forward == kNone) return false;
  EventRef forward{ref.process, node.forward};
  // Another operator in the other run: its inner values are its own, and the loss agreed all the
  // same.
  if (options_.one_sided && options_.one_sided(forward)) return false;
  if (push_novel_inputs(forward, forward, false, stack)) return true;
  for (uint32_t e = ref.event; e-- > node.forward;) {
    const Event& event = log.events[e];
    if (event.kind == EventKind::op && event.phase == Phase::recompute &&
        event.boundary == node.boundary)
      return push_novel_inputs({ref.process, e}, {ref.process, e}, false, stack);
    if (event.kind == EventKind::node && event.forward == node.forward && event.step != node.step)
      break;
  }
  return false;
}

// A collective reads the inputs of every rank that takes part: those whose inputs are novel.
std::vector<EventRef> Flow::push_peers(const EventRef& ref, std::vector<Work>& stack) const {
  std::vector<EventRef> novel;
  if (!(mine_.event(ref).flags & kCollective)) return novel;
  for (const EventRef& peer : mine_.collectives().peers(ref))
    if (push_novel_inputs(peer, peer, true, stack)) novel.push_back(peer);
  return novel;
}

// A Python number taken from a novel tensor (`.item()`, `.tolist()`) and handed on as an argument.
bool Flow::push_scalars(const EventRef& ref, std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(ref);
  const Event& event = mine_.event(ref);
  const std::string& scalars = log.text(event.scalars);
  constexpr size_t kTellingLength = 5;  // shorter numbers are equal by chance
  if (scalars.size() < kTellingLength) return false;
  constexpr uint32_t kReach = 20000;  // events looked back
  uint32_t stop = ref.event > kReach ? ref.event - kReach : 0;
  for (uint32_t e = ref.event; e-- > stop;) {
    const std::string& results = log.text(log.events[e].results);
    size_t equals = results.find('=');
    std::string_view value = results;
    if (equals != std::string::npos) value.remove_prefix(equals + 1);
    if (value.size() < kTellingLength || value.find_first_of("0123456789") == value.npos) continue;
    if (scalars.find(value) == std::string::npos) continue;
    if (push_novel_inputs({ref.process, e}, {ref.process, e}, true, stack)) return true;
  }
  return false;
}

// Where a value has several readers, autograd adds up what they send back, below Python: the sum
// comes from the outgoing gradients of those readers' nodes.
bool Flow::push_summed(const Work& work, std::vector<Work>& stack) const {
  const ProcessLog& log = mine_.log(work.wanted.event);
  const Event& event = mine_.event(work.wanted.event);
  if (event.kind != EventKind::node && event.kind != EventKind::accumulate) return false;
  const Slot& wanted = mine_.slot(work.wanted);
  std::unordered_set<ValueKey, ValueKeyHash> results;  // of the forward this node belongs to
  if (event.forward != kNone) {
    const Event& forward = log.events[event.forward];
    for (uint64_t s = forward.first_slot; s < forward.first_slot + forward.slot_count; ++s)
      if (log.slots[s].kind != SlotKind::in) results.insert(value_key(log, log.slots[s]));
  }
  auto reads_result = [&](const Event& node) {
    if (node.forward == kNone) return false;
    const Event& forward = log.events[node.forward];
    for (uint64_t s = forward.first_slot; s < forward.first_slot + forward.slot_count; ++s)
      if (log.slots[s].kind == SlotKind::in && results.contains(value_key(log, log.slots[s])))
        return true;
    return false;
  };
  // Without a reader of that result, whatever this backward pass sent on in that shape.
  for (bool readers_only : {true, false}) {
    bool any = false;
    for (uint32_t e = work.wanted.event.event; e-- > 0;) {
      const Event& node = log.events[e];
      if (node.step != event.step || node.kind == EventKind::loss) break;
      if (node.kind != EventKind::node || (readers_only && !reads_result(node))) continue;
      EventRef ref{work.wanted.event.process, e};
      for (uint64_t s = node.first_slot; s < node.first_slot + node.slot_count; ++s) {
        const Slot& slot = log.slots[s];
        if (slot.kind == SlotKind::in || slot.meta != wanted.meta || !novel(ref, slot)) continue;
        stack.push_back({{ref, s}, ref});
        any = true;
      }
    }
    if (any) return true;
  }
  return false;
}

// Gradients that a data-parallel reducer averaged below Python: they come from the gradients every
// rank accumulated in that step.
bool Flow::push_reduced(const Work& work, std::vector<Work>& stack) {
  const Event& consumer = mine_.event(work.consumer);
  const Slot& wanted = mine_.slot(work.wanted);
  if (mine_.run().processes.size() < 2 || consumer.kind != EventKind::optimizer) return false;
  const Meta& meta = mine_.log(work.consumer).metas[wanted.meta];
  bool own = false;
  std::vector<EventRef> peers;
  for (size_t p = 0; p < mine_.run().processes.size(); ++p) {
    const ProcessLog& log = mine_.run().processes[p];
    for (size_t e = 0; e < log.events.size(); ++e) {
      const Event& event = log.events[e];
      if (event.kind != EventKind::accumulate || event.step != consumer.step) continue;
      EventRef ref{int32_t(p), uint32_t(e)};
      for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
        const Slot& slot = log.slots[s];
        if (slot.kind == SlotKind::in || !(log.metas[slot.meta] == meta) || !novel(ref, slot))
          continue;
        stack.push_back({{ref, s}, ref});
        if (ref.process == work.consumer.process)
          own = true;
        else if (peers.empty() || peers.back().process != ref.process)
          peers.push_back(ref);
      }
    }
  }
  const bool any = own || !peers.empty();
  if (any && !own) arrivals_.push_back({work.consumer, work.wanted.slot, std::move(peers)});
  return any;
}

// `made` is a novel value some event made: go on to what that event read, or stop there.
void Flow::expand(const SlotRef& made, std::vector<Work>& stack, std::vector<Origin>& origins) {
  const EventRef& ref = made.event;
  if (!visited_.insert(id(ref)).second) return;
  if (views_larger_input(made) && trace_parts({made, ref}, stack, origins)) return;
  const bool own = push_novel_inputs(ref, ref, true, stack);
  std::vector<EventRef> peers = push_peers(ref, stack);
  const bool brought = !peers.empty();
  if (!own && brought) arrivals_.push_back({ref, made.slot, std::move(peers)});
  if (own || brought) return;
  if (push_forward(ref, stack) || push_children(ref, stack) || push_scalars(ref, stack)) return;
  const ProcessLog& log = mine_.log(ref);
  auto location = log.locations.find(std::string(mine_.boundary(ref)));
  const Event& event = mine_.event(ref);
  bool movement = event.kind == EventKind::collective ||
                  (event.kind == EventKind::op && location != log.locations.end() &&
                   ((event.flags & kCollective) || moves_bytes(location->second.callee)));
  origins.push_back({ref, made.slot, false, movement});
}

void Flow::trace(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins) {
  const Slot& wanted = mine_.slot(work.wanted);
  ValueKey key = value_key(mine_.log(work.wanted.event), wanted);
  // A result is made by its own event at the latest, an input by an event before its consumer.
  bool result = wanted.kind != SlotKind::in;
  SlotRef made = mine_.producer(key, result ? work.wanted.event : work.consumer, result);
  if (made.event.process >= 0) return expand(made, stack, origins);

  // Nobody made this value as such: parts or views of what somebody made?
  if (trace_parts(work, stack, origins) || push_summed(work, stack) || push_reduced(work, stack))
    return;
  bool movement = reduced_below(work);
  if (movement && discounting_) return;
  if (visited_.insert(id(work.wanted.event) | 1ull << 63).second)
    origins.push_back({work.wanted.event, work.wanted.slot, true, movement});
}

// Goes on to the novel parts of the memory a value lies on; known parts, put together as only this
// run does, end the walk. False: the memory does not explain the value.
bool Flow::trace_parts(const Work& work, std::vector<Work>& stack, std::vector<Origin>& origins) {
  const Slot& wanted = mine_.slot(work.wanted);
  ValueIndex::Parts parts = mine_.parts(work.consumer, wanted);
  bool any = false;
  for (const SlotRef& part : parts.left)
    if (novel(part.event, mine_.slot(part))) expand(part, stack, origins), any = true;
  if (any) return true;
  if (trace_overwrite(wanted, parts, origins)) return true;
  if (!relaid_parts(wanted, parts)) return false;
  if (!discounting_ && visited_.insert(id(work.wanted.event) | 1ull << 63).second)
    origins.push_back({work.wanted.event, work.wanted.slot, wanted.kind == SlotKind::in, true});
  return true;
}

// A known value of this extent, then parts of it written over with known values: the other run
// lacks the writing, so that is where the value comes from.
bool Flow::trace_overwrite(const Slot& wanted, const ValueIndex::Parts& parts,
                           std::vector<Origin>& origins) {
  if (!parts.complete || parts.left.size() < 2) return false;
  const Slot& oldest = mine_.slot(parts.left.back());
  if (oldest.address != wanted.address || oldest.size_bytes != wanted.size_bytes) return false;
  for (size_t i = 0; i + 1 < parts.left.size(); ++i)
    if (visited_.insert(id(parts.left[i].event)).second)
      origins.push_back({parts.left[i].event, parts.left[i].slot, false, false});
  return true;
}

// Values both runs know, put together in memory as only this run does. One part of the same extent
// is no such thing: there the bytes changed unseen.
bool Flow::relaid_parts(const Slot& wanted, const ValueIndex::Parts& parts) const {
  if (!parts.complete) return false;
  return std::none_of(parts.left.begin(), parts.left.end(), [&](const SlotRef& part) {
    const Slot& left = mine_.slot(part);
    return left.address == wanted.address && left.size_bytes == wanted.size_bytes;
  });
}

// A gradient at the optimizer of several ranks: averaged below Python, from gradients both runs
// know.
bool Flow::reduced_below(const Work& work) const {
  return mine_.run().processes.size() > 1 &&
         mine_.event(work.wanted.event).kind == EventKind::optimizer &&
         mine_.log(work.wanted.event).text(mine_.slot(work.wanted).name).starts_with("grad");
}

std::vector<Origin> Flow::origins(const std::vector<SlotRef>& sinks) {
  std::vector<Origin> found;
  std::vector<Work> stack;
  for (const SlotRef& sink : sinks) stack.push_back({sink, sink.event});
  while (!stack.empty()) {
    Work work = stack.back();
    stack.pop_back();
    trace(work, stack, found);
  }
  std::sort(found.begin(), found.end(), [](const Origin& x, const Origin& y) {
    return std::tie(x.event.event, x.event.process) < std::tie(y.event.event, y.event.process);
  });
  return found;
}

}  // namespace opguard
