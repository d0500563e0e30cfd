// Two passes: the first finds who may write where and counts what must be known of the whole run,
// the second lives through it. A change is kept as a candidate, since what comes later may explain
// it:
//
//   its block has two counters                     none: `.data`, numpy
//   its reader comes round, and no result with it  none: memory that is filled anew each round
//   the same step leaves it intact elsewhere       proven
#include "align/values/unseen_changes.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "align/values/value_index.h"
#include "align/values/views.h"
#include "align/values/writings.h"
#include "operators/operators.h"

namespace opguard {
namespace {

// What is known of a view since a recorded operator last left it.
struct Life {
  Sight last;             // as last read or left
  bool held = false;      // an operator's result lies there; false: only reads are known
  bool untouched = true;  // no reader has found other bytes
  bool in_use = false;    // a reader found the bytes as they were left
  bool renewed = false;   // it was handed out with bytes no such result had before
  Fingerprint left_value;
  Sighting left, seen;
  std::vector<uint32_t> readers;  // boundaries
  size_t candidate = SIZE_MAX;

  bool has_read(uint32_t boundary) const {
    return std::find(readers.begin(), readers.end(), boundary) != readers.end();
  }
};

// What is known of a memory block, whatever lies in it.
struct Block {
  uint32_t highest = 0;    // version seen
  bool recounted = false;  // by more than one counter
  bool of_model = false;
};

// What the names of a log say, each looked at once.
class TextNumbers {
 public:
  // By its name in source.
  struct Operation {
    bool writes_statistics, makes_room;
  };

  explicit TextNumbers(const ProcessLog& log)
      : log_(log), operations_(log.strings.size()), of_model_(log.strings.size()) {}

  const Operation& operation(uint32_t boundary) {
    auto& known = boundary < operations_.size() ? operations_[boundary] : unnamed_;
    if (!known) {
      const std::string name = callee(boundary);
      known = {may_update_statistics(name), makes_room(name)};
    }
    return *known;
  }

  // Parameters, gradients, optimizer state: wrappers and optimizers write them through `.data`,
  // which has a version counter of its own.
  bool of_model(const Event& e, const Slot& s) {
    if (e.kind == EventKind::optimizer || e.kind == EventKind::accumulate) return true;
    if (s.flags & kParameter) return true;
    if ((s.flags & kModelValue) && e.kind != EventKind::loss) return true;
    if (s.name >= of_model_.size()) return false;
    std::optional<bool>& known = of_model_[s.name];
    if (!known) {
      const std::string& name = log_.text(s.name);
      known = false;
      for (const char* part : {"param:", "grad:", "state:"})
        if (name.find(part) != name.npos) known = true;
    }
    return *known;
  }

 private:
  std::string callee(uint32_t boundary) const {
    const std::string& id = log_.text(boundary);
    auto found = log_.locations.find(id);
    if (found != log_.locations.end() && !found->second.callee.empty()) return found->second.callee;
    return id.substr(0, id.rfind(':'));
  }

  const ProcessLog& log_;
  std::vector<std::optional<Operation>> operations_;  // by boundary
  std::optional<Operation> unnamed_;
  std::vector<std::optional<bool>> of_model_;  // by string
};

bool overlap(const Slot& a, const Slot& b) {
  return a.address < b.address + b.size_bytes && b.address < a.address + a.size_bytes;
}

class Lives {
 public:
  explicit Lives(const ProcessLog& log) : log_(log), names_(log) {}

  // In the order of time: as events completed, but for what an event read that others ran inside
  // of, since it began before them.
  UnseenChanges changes() {
    collect();
    auto next = late_.begin();
    visit([&](const Sighting& at, const Event& e, const Slot& slot) {
      for (; next != late_.end() && next->time_ns < at.time_ns; ++next) observe(*next);
      observe(at, e, slot);
    });
    for (; next != late_.end(); ++next) observe(*next);
    for (const Candidate& candidate : candidates_)
      if (!candidate.refilled && !block(candidate.storage).recounted) {
        result_.changes.push_back(candidate.change);
        result_.changes.back().proven |= intact_.contains(candidate.step);
      }
    return std::move(result_);
  }

 private:
  struct Candidate {
    UnseenChange change;
    uint32_t storage;
    uint64_t step;  // key in intact_
    bool refilled = false;
  };

  Event event(const Sighting& at) const { return log_.events[at.event]; }
  Slot slot(const Sighting& at) const { return log_.slots[at.slot]; }

  static bool is_observed(const Slot& slot) {
    return slot.storage != 0 && !(slot.flags & (kCarried | kPermuted));
  }

  static Sighting sighting(const Event& e, uint32_t event, const EventSlots& slots,
                           const Slot& slot) {
    return {slot.kind == SlotKind::in ? e.start_ns : e.end_ns, event,
            uint32_t(slots.index_of(slot))};
  }

  // What must be known of the whole run before any of it is judged.
  void collect() {
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < log_.events.size(); ++i) {
      const Event e = log_.events[i];
      if (e.kind == EventKind::state) continue;
      const bool uncounted = names_.operation(e.boundary).writes_statistics;
      const EventSlots slots = log_.slots_of(e);
      for (const Slot& slot : slots) {
        writings_.add(e, slot, uncounted);
        if (slot.storage == 0) continue;
        if (names_.of_model(e, slot)) block(slot.storage).of_model = true;
        if (!is_observed(slot)) continue;
        const Sighting at = sighting(e, i, slots, slot);
        if (at.time_ns < last_ns)
          late_.push_back(at);
        else
          last_ns = at.time_ns;
      }
    }
    std::stable_sort(late_.begin(), late_.end(),
                     [](const Sighting& x, const Sighting& y) { return x.time_ns < y.time_ns; });
  }

  // All that is observed but for what is late.
  template <typename Visit>
  void visit(Visit visit) const {
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < log_.events.size(); ++i) {
      const Event e = log_.events[i];
      if (e.kind == EventKind::state) continue;
      const EventSlots slots = log_.slots_of(e);
      for (const Slot& slot : slots) {
        if (!is_observed(slot)) continue;
        const Sighting at = sighting(e, i, slots, slot);
        if (at.time_ns < last_ns) continue;
        last_ns = at.time_ns;
        visit(at, e, slot);
      }
    }
  }

  void observe(const Sighting& at) {
    const Slot seen = slot(at);
    observe(at, event(at), seen);
  }

  void observe(const Sighting& at, const Event& e, const Slot& slot) {
    if (slot.kind == SlotKind::in)
      read(at, e, slot);
    else
      left(at, e, slot);
  }

  // Blocks are numbered from 1, one after the other.
  Block& block(uint32_t storage) {
    if (storage >= blocks_.size()) {
      if (storage > log_.slots.size()) return strange_blocks_[storage];
      blocks_.resize(size_t{storage} + 1);
    }
    return blocks_[storage];
  }

  // Another tensor on the same memory that counts for itself (`.data`, numpy, DLPack): what it
  // counted is no longer what this one would have.
  static void watch_counter(Block& block, const Slot& s) {
    if (s.version < block.highest) block.recounted = true;
    block.highest = std::max(block.highest, s.version);
  }

  void left(const Sighting& at, const Event& e, const Slot& s) {
    Block& mine = block(s.storage);
    if (mine.of_model) return;
    watch_counter(mine, s);
    Life& life = lives_[view_of(s)];
    const Look look = life.last.compare(s);
    // An operator with operators inside returns what one of them made.
    if (look == Look::as_seen && has_value(s) && life.held && life.untouched &&
        (at.event == life.left.event || inside(at, life.left))) {
      life.seen = at;
      return;
    }
    Life next;
    next.last = Sight::of(s);
    next.left_value = s.value;
    next.left = next.seen = at;
    // Zeros and factories make room: who fills it is not told by a counter.
    next.held =
        has_value(s) && s.value != Fingerprint{} && !names_.operation(e.boundary).makes_room;
    next.renewed = look != Look::first && life.last.value != s.value && life.left_value != s.value;
    // What hands on its own input (`buffer.to(device)` that need not move it) reads it each round.
    if (look != Look::first && life.seen.event == at.event) next.readers = {e.boundary};
    life = std::move(next);
  }

  bool inside(const Sighting& outer, const Sighting& inner) const {
    const Event &o = event(outer), &i = event(inner);
    return o.thread == i.thread && inner.event < outer.event && inner.event >= o.begin;
  }

  void read(const Sighting& at, const Event& e, const Slot& s) {
    ++result_.reads;
    Block& mine = block(s.storage);
    if (mine.of_model || !has_value(s)) return;
    watch_counter(mine, s);
    Life& life = lives_[view_of(s)];
    const Look look = life.last.compare(s);
    if (look == Look::first || look == Look::counted) {
      // Made or changed where no probe is: what it holds from now on is known from reads alone.
      life = {};
      life.last = Sight::of(s);
      life.left_value = s.value;
      life.left = life.seen = at;
      return;
    }
    if (life.held && life.untouched) ++result_.compared;
    if (look == Look::as_seen) {
      if (life.held && life.untouched && !std::exchange(life.in_use, true))
        intact_.insert(step(life, e));
    } else {
      changed(life, at, e, s);
      life.last = Sight::of(s);
    }
    life.seen = at;
    if (e.kind == EventKind::op && !life.has_read(e.boundary)) life.readers.push_back(e.boundary);
  }

  void changed(Life& life, const Sighting& at, const Event& e, const Slot& s) {
    if (!life.held) return;
    if (writings_.between(s, life.seen.time_ns, std::max(e.end_ns, at.time_ns))) {
      life.held = false;
      return;
    }
    // A reader that comes round again without a new result: memory that is filled anew for it.
    const bool again =
        e.kind == EventKind::op && e.phase == Phase::forward && life.has_read(e.boundary);
    // Unless its own result begins that round.
    if (again && life.candidate != SIZE_MAX && e.boundary != event(life.left).boundary)
      candidates_[life.candidate].refilled = true;
    if (!std::exchange(life.untouched, false) || again) return;
    const bool sure = life.in_use || life.renewed || computed(life.left);
    life.candidate = candidates_.size();
    candidates_.push_back({{life.left, life.seen, at, sure}, s.storage, step(life, e)});
  }

  // From one operator's result to its reader, as a place in the program.
  uint64_t step(const Life& life, const Event& reader) const {
    uint64_t code = uint64_t(event(life.left).boundary) << 32 | reader.boundary;
    return code * 0x9e3779b97f4a7c15u + slot(life.left).index;
  }

  // A result in memory of its own, made from tensors: not a view that may be filled later.
  bool computed(const Sighting& at) const {
    const Slot result = slot(at);
    if (result.kind == SlotKind::written) return true;
    bool reads = false;
    const EventSlots slots = log_.slots_of(event(at));
    for (const Slot& input : slots) {
      if (input.kind != SlotKind::in) continue;
      reads = true;
      if (input.storage == result.storage || overlap(input, result)) return false;
    }
    return reads;
  }

  const ProcessLog& log_;
  TextNumbers names_;
  Writings writings_;
  std::vector<Sighting> late_;  // by time
  std::vector<Block> blocks_;   // by storage
  std::unordered_map<uint32_t, Block> strange_blocks_;
  std::unordered_set<uint64_t> intact_;  // steps after which the first reader found all as left
  // A block at the address of another one says that the other is gone: memory is bounded by what
  // was alive at one time.
  std::unordered_map<View, Life, ViewHash> lives_;
  std::vector<Candidate> candidates_;
  UnseenChanges result_;
};

}  // namespace

UnseenChanges unseen_changes(const ProcessLog& log) { return Lives(log).changes(); }

}  // namespace opguard
