#include "align/check/overwritten.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "align/judge/pivot_view.h"
#include "align/values/value_index.h"

namespace opguard {
namespace {

// A tensor lying in memory in one way: address, span, meta. Strides are not in a log, so kPermuted
// ones are no evidence.
using ViewKey = std::tuple<uint64_t, uint64_t, uint32_t>;

struct ViewKeyHash {
  size_t operator()(const ViewKey& key) const {
    const auto& [address, size_bytes, meta] = key;
    return (address ^ (size_bytes << 20) ^ meta) * 0x9e3779b97f4a7c15ull;
  }
};

// One slot, when it was read.
struct Observation {
  uint64_t time_ns;
  uint32_t event, slot;
};

// What is known of a view since a recorded operator last left it.
struct Life {
  bool held = false;      // an operator's result lies there; false: only reads are known
  bool untouched = true;  // no reader has found other bytes
  bool in_use = false;    // a reader found the bytes as they were left
  bool renewed = false;   // it was handed out with bytes no such result had before
  uint32_t storage = 0, version = 0;
  Fingerprint value;  // as last read
  Fingerprint left_value;
  Observation left{}, seen{};
  std::vector<uint32_t> readers;  // boundaries
  size_t candidate = SIZE_MAX;
};

// What is known of a memory block, whatever lies in it.
struct Block {
  uint32_t highest = 0;    // version seen
  bool recounted = false;  // by more than one counter
  bool of_model = false;
};

// By its name in source.
struct Operation {
  bool writes_uncounted, allocates;
};

struct Writing {
  uint64_t begin, end;  // addresses
  uint64_t from_ns, to_ns;
};

// Results that are room for values rather than values.
bool allocates(std::string_view callee) {
  static constexpr std::array<std::string_view, 16> kFactories = {
      "zeros",         "zeros_like",        "new_zeros",      "ones",   "ones_like",  "new_ones",
      "full",          "full_like",         "new_full",       "empty",  "empty_like", "new_empty",
      "empty_strided", "new_empty_strided", "empty_permuted", "resize_"};
  callee.remove_prefix(callee.rfind('.') + 1);  // npos + 1 = 0
  return std::find(kFactories.begin(), kFactories.end(), callee) != kFactories.end();
}

// Operators of torch that write inputs and do not count it: the running statistics.
bool writes_uncounted(std::string_view callee) {
  return callee.find("batch_norm") != callee.npos || callee.find("instance_norm") != callee.npos ||
         callee.find("BatchNorm") != callee.npos || callee.find("InstanceNorm") != callee.npos;
}

bool overlap(uint64_t begin_a, uint64_t end_a, uint64_t begin_b, uint64_t end_b) {
  return begin_a < end_b && begin_b < end_a;
}

class Lives {
 public:
  Lives(const Run& run, int32_t process, OverwrittenCheck& check)
      : log_(run.processes[process]),
        process_(process),
        check_(check),
        operations_(log_.strings.size()),
        model_names_(log_.strings.size()) {}

  // In the order of time: as events completed, but for what an event read that others ran inside
  // of, since it began before them.
  void run() {
    collect();
    auto next = late_.begin();
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < log_.events.size(); ++i) {
      const Event e = log_.events[i];
      if (e.kind == EventKind::state) continue;
      const EventSlots slots = log_.slots.of_event(e);
      for (uint32_t s = 0; s < e.slot_count; ++s) {
        const Slot& slot = slots[s];
        if (!is_observed(slot)) continue;
        const Observation at = observation(e, i, s, slot);
        if (at.time_ns < last_ns) continue;
        last_ns = at.time_ns;
        for (; next != late_.end() && next->time_ns < at.time_ns; ++next) observe(*next);
        observe(at, e, slot);
      }
    }
    for (; next != late_.end(); ++next) observe(*next);
    settle();
  }

 private:
  // Why a changed view would be a finding.
  enum class Proof : uint8_t {
    sure,      // an operator's own result, bytes already in use, or handed out with new contents
    compared,  // only if the same reader finds the same producer's bytes intact elsewhere
  };

  struct Candidate {
    Observation left, seen, read;
    Proof proof;
    uint64_t step = 0;  // key in intact_
    bool refilled = false;
  };

  Event event(const Observation& at) const { return log_.events[at.event]; }
  Slot slot(const Observation& at) const { return log_.slots[at.slot]; }

  std::string callee(const Event& e) const {
    const std::string& id = log_.text(e.boundary);
    auto found = log_.locations.find(id);
    if (found != log_.locations.end() && !found->second.callee.empty()) return found->second.callee;
    return id.substr(0, id.rfind(':'));
  }

  // Parameters, gradients, optimizer state: wrappers and optimizers write them through `.data`,
  // which has a version counter of its own.
  bool of_model(const Event& e, const Slot& s) {
    if (e.kind == EventKind::optimizer || e.kind == EventKind::accumulate) return true;
    if (s.flags & kParameter) return true;
    if ((s.flags & kModelValue) && e.kind != EventKind::loss) return true;
    if (s.name >= model_names_.size()) return false;
    std::optional<bool>& known = model_names_[s.name];
    if (!known) {
      const std::string& name = log_.text(s.name);
      known = false;
      for (const char* part : {"param:", "grad:", "state:"})
        if (name.find(part) != name.npos) known = true;
    }
    return *known;
  }

  static bool is_observed(const Slot& slot) {
    return slot.storage != 0 && !(slot.flags & (kCarried | kPermuted));
  }

  static Observation observation(const Event& e, uint32_t event, uint32_t place, const Slot& slot) {
    return {slot.kind == SlotKind::in ? e.start_ns : e.end_ns, event,
            uint32_t(e.first_slot + place)};
  }

  // What must be known of the whole run before any of it is judged.
  void collect() {
    uint64_t last_ns = 0;
    for (uint32_t i = 0; i < log_.events.size(); ++i) {
      const Event e = log_.events[i];
      if (e.kind == EventKind::state) continue;
      const bool uncounted = operation(e.boundary).writes_uncounted;
      const bool communicates = e.kind == EventKind::collective || (e.flags & kCollective);
      const EventSlots slots = log_.slots.of_event(e);
      for (uint32_t s = 0; s < e.slot_count; ++s) {
        const Slot& slot = slots[s];
        const bool in = slot.kind == SlotKind::in;
        // A collective in flight writes until an event of its own says that it has landed; what
        // is read meanwhile is flagged unreadable.
        if (slot.kind == SlotKind::written || communicates || (uncounted && in) ||
            (in && (slot.flags & kUnreadable))) {
          // What could not be read has no address: it may be all of the block.
          const uint64_t end = slot.address ? slot.address + slot.size_bytes : UINT64_MAX;
          if (slot.storage != 0 || slot.address != 0)
            writings_[slot.storage].push_back({slot.address, end, e.start_ns, e.end_ns});
        }
        if (slot.storage == 0) continue;
        if (of_model(e, slot)) block(slot.storage).of_model = true;
        if (!is_observed(slot)) continue;
        const Observation at = observation(e, i, s, slot);
        if (at.time_ns < last_ns)
          late_.push_back(at);
        else
          last_ns = at.time_ns;
      }
    }
    std::stable_sort(late_.begin(), late_.end(), [](const Observation& x, const Observation& y) {
      return x.time_ns < y.time_ns;
    });
  }

  void observe(const Observation& at) {
    const Slot seen = slot(at);
    observe(at, event(at), seen);
  }

  void observe(const Observation& at, const Event& e, const Slot& slot) {
    if (slot.kind == SlotKind::in)
      read(at, e, slot);
    else
      left(at, e, slot);
  }

  const Operation& operation(uint32_t boundary) {
    auto& slot = boundary < operations_.size() ? operations_[boundary] : unnamed_;
    if (!slot) {
      Event e;
      e.boundary = boundary;
      const std::string name = callee(e);
      slot = {writes_uncounted(name), allocates(name)};
    }
    return *slot;
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

  void left(const Observation& at, const Event& e, const Slot& s) {
    Block& mine = block(s.storage);
    if (mine.of_model) return;
    watch_counter(mine, s);
    Life& life = lives_[key(s)];
    const bool fresh = life.storage != s.storage;
    const bool same = !fresh && has_value(s) && life.value == s.value && life.version == s.version;
    // An operator with operators inside returns what one of them made.
    if (same && life.held && life.untouched &&
        (at.event == life.left.event || inside(at, life.left))) {
      life.seen = at;
      return;
    }
    Life next;
    next.storage = s.storage;
    next.version = s.version;
    next.value = next.left_value = s.value;
    next.left = next.seen = at;
    // Zeros and factories make room: who fills it is not told by a counter.
    next.held = has_value(s) && s.value != Fingerprint{} && !operation(e.boundary).allocates;
    next.renewed = !fresh && life.value != s.value && life.left_value != s.value;
    // What hands on its own input (`buffer.to(device)` that need not move it) reads it each round.
    if (!fresh && life.seen.event == at.event) next.readers = {e.boundary};
    life = std::move(next);
  }

  bool inside(const Observation& outer, const Observation& inner) const {
    const Event &o = event(outer), &i = event(inner);
    return o.thread == i.thread && inner.event < outer.event && inner.event >= o.begin;
  }

  void read(const Observation& at, const Event& e, const Slot& s) {
    ++check_.reads;
    Block& mine = block(s.storage);
    if (mine.of_model || !has_value(s)) return;
    watch_counter(mine, s);
    Life& life = lives_[key(s)];
    if (life.storage != s.storage || life.version != s.version) {
      // Made or changed where no probe is: what it holds from now on is known from reads alone.
      life = {};
      life.storage = s.storage;
      life.version = s.version;
      life.value = life.left_value = s.value;
      life.left = life.seen = at;
      return;
    }
    if (life.held && life.untouched) ++check_.compared;
    if (life.value == s.value) {
      if (life.held && life.untouched && !std::exchange(life.in_use, true))
        intact_.insert(step(life, e));
    } else {
      changed(life, at, e, s);
      life.value = s.value;
    }
    life.seen = at;
    if (e.kind == EventKind::op && !has_read(life, e.boundary)) life.readers.push_back(e.boundary);
  }

  static bool has_read(const Life& life, uint32_t boundary) {
    return std::find(life.readers.begin(), life.readers.end(), boundary) != life.readers.end();
  }

  void changed(Life& life, const Observation& at, const Event& e, const Slot& s) {
    if (!life.held) return;
    if (written_between(s, life.seen.time_ns, std::max(e.end_ns, at.time_ns))) {
      life.held = false;
      return;
    }
    // A reader that comes round again without a new result: memory that is filled anew for it.
    const bool again =
        e.kind == EventKind::op && e.phase == Phase::forward && has_read(life, e.boundary);
    // Unless its own result begins that round.
    if (again && life.candidate != SIZE_MAX && e.boundary != event(life.left).boundary)
      candidates_[life.candidate].refilled = true;
    if (!std::exchange(life.untouched, false) || again) return;
    const bool sure = life.in_use || life.renewed || computed(life.left);
    life.candidate = candidates_.size();
    candidates_.push_back(
        {life.left, life.seen, at, sure ? Proof::sure : Proof::compared, step(life, e), false});
  }

  // From one operator's result to its reader, as a place in the program.
  uint64_t step(const Life& life, const Event& reader) const {
    uint64_t code = uint64_t(event(life.left).boundary) << 32 | reader.boundary;
    return code * 0x9e3779b97f4a7c15u + slot(life.left).index;
  }

  // A result in memory of its own, made from tensors: not a view that may be filled later.
  bool computed(const Observation& at) const {
    const Event& e = event(at);
    const Slot& result = slot(at);
    if (result.kind == SlotKind::written) return true;
    bool reads = false;
    for (uint64_t i = e.first_slot; i < e.first_slot + e.slot_count; ++i) {
      const Slot& input = log_.slots[i];
      if (input.kind != SlotKind::in) continue;
      reads = true;
      if (input.storage == result.storage ||
          overlap(input.address, input.address + input.size_bytes, result.address,
                  result.address + result.size_bytes))
        return false;
    }
    return reads;
  }

  bool written_between(const Slot& s, uint64_t from_ns, uint64_t to_ns) const {
    for (uint32_t storage : {s.storage, 0u}) {  // 0: numpy's writes, known by address alone
      auto found = writings_.find(storage);
      if (found == writings_.end()) continue;
      // In the order of their ends, as events are.
      auto w = std::lower_bound(
          found->second.begin(), found->second.end(), from_ns,
          [](const Writing& writing, uint64_t time_ns) { return writing.to_ns <= time_ns; });
      for (; w != found->second.end(); ++w)
        if (overlap(w->begin, w->end, s.address, s.address + s.size_bytes) && w->from_ns <= to_ns)
          return true;
    }
    return false;
  }

  void settle() {
    std::map<std::pair<uint32_t, uint32_t>, size_t> places;  // by boundaries, in check_.findings
    struct Span {
      uint64_t to_ns;
      size_t finding;
    };
    std::unordered_map<uint32_t, Span> open;  // by storage: the latest overwriting found
    for (const Candidate& c : candidates_) {
      const uint32_t storage = slot(c.read).storage;
      if (c.refilled || block(storage).recounted) continue;
      // One writing shows in every view of the block.
      auto latest = open.find(storage);
      if (latest != open.end() && c.seen.time_ns < latest->second.to_ns) {
        std::vector<EventRef>& readers = check_.findings[latest->second.finding].readers;
        const EventRef reader{process_, c.read.event};
        if (std::find(readers.begin(), readers.end(), reader) == readers.end() &&
            !(check_.findings[latest->second.finding].consumer == reader))
          readers.push_back(reader);
        continue;
      }
      if (c.proof == Proof::compared && !intact_.contains(c.step)) continue;
      const uint32_t from = event(c.left).boundary, to = event(c.read).boundary;
      auto [at, fresh] = places.try_emplace({from, to}, check_.findings.size());
      if (fresh)
        check_.findings.push_back(finding(c));
      else
        ++check_.findings[at->second].times;
      open[storage] = {c.read.time_ns, at->second};
    }
  }

  Overwrite finding(const Candidate& c) const {
    Overwrite found;
    found.producer = {process_, c.left.event};
    found.seen = {process_, c.seen.event};
    found.consumer = {process_, c.read.event};
    found.left = c.left.slot;
    found.read = c.read.slot;
    found.from_ns = c.seen.time_ns;
    found.to_ns = c.read.time_ns;
    const uint32_t own = event(c.read).thread;
    std::map<std::tuple<bool, uint32_t, uint32_t>, WindowPart> parts;  // other threads first
    for (uint32_t i = 0; i < log_.events.size(); ++i) {
      const Event& e = log_.events[i];
      if (e.end_ns <= found.from_ns || e.start_ns >= found.to_ns) continue;
      if (i == c.left.event || i == c.read.event || e.kind == EventKind::state) continue;
      ++found.events;
      WindowPart& part = parts[{e.thread == own, e.thread, e.boundary}];
      if (part.count++ == 0) part.thread = e.thread, part.first = {process_, i};
    }
    for (const auto& [key, part] : parts) found.window.push_back(part);
    std::stable_sort(found.window.begin(), found.window.end(),
                     [&](const WindowPart& x, const WindowPart& y) {
                       return std::tuple(x.thread == own, x.thread, x.first.event) <
                              std::tuple(y.thread == own, y.thread, y.first.event);
                     });
    return found;
  }

  static ViewKey key(const Slot& s) { return {s.address, s.size_bytes, s.meta}; }

  const ProcessLog& log_;
  const int32_t process_;
  OverwrittenCheck& check_;
  std::vector<Observation> late_;                                // by time
  std::unordered_map<uint32_t, std::vector<Writing>> writings_;  // by storage
  std::vector<std::optional<Operation>> operations_;             // by boundary
  std::optional<Operation> unnamed_;
  std::vector<std::optional<bool>> model_names_;  // by string
  std::vector<Block> blocks_;                     // by storage
  std::unordered_map<uint32_t, Block> strange_blocks_;
  std::unordered_set<uint64_t> intact_;  // steps after which the first reader found all as left
  // A block at the address of another one says that the other is gone: memory is bounded by what
  // was alive at one time.
  std::unordered_map<ViewKey, Life, ViewKeyHash> lives_;
  std::vector<Candidate> candidates_;
};

}  // namespace

OverwrittenCheck check_overwritten(const Run& run) {
  OverwrittenCheck check;
  for (size_t p = 0; p < run.processes.size(); ++p) Lives(run, int32_t(p), check).run();
  return check;
}

Reasons explain(const Overwrite& finding) {
  Reasons why = {{.kind = ReasonKind::memory_overwritten,
                  .events = {finding.producer, finding.consumer},
                  .slots = {finding.left, finding.read}}};
  if (!finding.readers.empty())
    why.push_back({.kind = ReasonKind::more_readers, .numbers = {finding.readers.size()}});
  if (finding.times > 1) why.push_back({.kind = ReasonKind::times, .numbers = {finding.times}});
  return why;
}

namespace {

struct Use {
  EventRef event;
  uint32_t slot = kNone;
};

// The first operator that read what the producer left in its block, whichever part of it: inner
// operators end before those they run in. {} if none did before that event.
Use first_use(const Run& run, const Overwrite& found, uint32_t before) {
  const ProcessLog& log = run.processes[found.producer.process];
  const Event producer = log.events[found.producer.event];
  const uint32_t storage = log.slots[found.left].storage;
  std::vector<Slot> left;
  for (uint64_t s = producer.first_slot; s < producer.first_slot + producer.slot_count; ++s)
    if (log.slots[s].kind != SlotKind::in && log.slots[s].storage == storage)
      left.push_back(log.slots[s]);
  for (uint32_t i = found.producer.event + 1; i < before; ++i) {
    const Event event = log.events[i];
    if (event.kind != EventKind::op || event.start_ns < producer.end_ns) continue;
    for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s) {
      const Slot slot = log.slots[s];
      if (slot.kind != SlotKind::in || slot.storage != storage) continue;
      for (const Slot& part : left)
        if (part.version == slot.version && overlap(part.address, part.address + part.size_bytes,
                                                    slot.address, slot.address + slot.size_bytes))
          return {{found.producer.process, i}, uint32_t(s)};
    }
  }
  return {};
}

EventRef partner(const Alignment& alignment, int side, const EventRef& ref) {
  for (const ProcessPair& both : alignment.processes) {
    if ((side == 0 ? both.a : both.b) != ref.process) continue;
    for (const Pair& pair : both.pairs)
      if ((side == 0 ? pair.a : pair.b) == ref.event)
        return side == 0 ? EventRef{both.b, pair.b} : EventRef{both.a, pair.a};
  }
  return {};
}

// An operator that reads the block while its bytes were changing may be the first to see others,
// too.
bool reads(const Run& run, const Overwrite& found, const EventRef& ref) {
  if (found.consumer == ref ||
      std::find(found.readers.begin(), found.readers.end(), ref) != found.readers.end())
    return true;
  if (ref.process != found.consumer.process) return false;
  const ProcessLog& log = run.processes[ref.process];
  const Event event = log.events[ref.event];
  if (event.start_ns < found.from_ns || event.start_ns > found.to_ns) return false;
  for (uint64_t s = event.first_slot; s < event.first_slot + event.slot_count; ++s)
    if (log.slots[s].kind == SlotKind::in && log.slots[s].storage == log.slots[found.left].storage)
      return true;
  return false;
}

// Another thread ran while the bytes changed: which reader was the first to see it is chance, and
// another one in the next run. From its first use on the memory was read, and should have been left
// alone: the pivot is there, and what saw other bytes is the candidate behind it.
void move_to_first_use(const Run& run, int side, const Overwrite& found, const Alignment& alignment,
                       Verdict& verdict) {
  const uint32_t own = run.processes[found.consumer.process].events[found.consumer.event].thread;
  const bool beside = std::any_of(found.window.begin(), found.window.end(),
                                  [&](const WindowPart& part) { return part.thread != own; });
  const Pivot seen = verdict.candidates.front();
  const Use use = first_use(run, found, (side == 0 ? seen.a : seen.b).event);
  if (!beside || use.event.process < 0) return;
  Pivot pivot;
  pivot.kind = PivotKind::race;
  (side == 0 ? pivot.a : pivot.b) = use.event;
  (side == 0 ? pivot.b : pivot.a) = partner(alignment, side, use.event);
  if (side == 1 || pivot.b.process < 0) pivot.slot = use.slot;
  pivot.why = {{.kind = ReasonKind::first_use,
                .side = side,
                .events = {found.producer, side == 0 ? seen.a : seen.b}}};
  for (RankShare& share : verdict.ranks)
    if (share.role == RankRole::origin && share.a == seen.a && share.b == seen.b)
      share.a = pivot.a, share.b = pivot.b, share.slot = pivot.slot;
  if (verdict.candidates.size() >= kMostCandidates) verdict.candidates.pop_back();
  verdict.candidates.insert(verdict.candidates.begin(), std::move(pivot));
}

}  // namespace

void add_overwritten_findings(const Run& a, const Run& b, const Alignment& alignment,
                              Verdict& verdict) {
  const Run* runs[2] = {&a, &b};
  bool moved = false;
  for (int side : {0, 1}) {
    const Run& run = *runs[side];
    const OverwrittenCheck check = check_overwritten(run);
    if (check.findings.empty()) continue;
    const Overwrite& first = check.findings.front();
    verdict.notes.push_back({{.kind = ReasonKind::overwrite_finding,
                              .side = side,
                              .numbers = {check.findings.size() - 1},
                              .events = {first.producer, first.consumer}}});
    for (Pivot& pivot : verdict.candidates) {
      const EventRef& ref = side == 0 ? pivot.a : pivot.b;
      if (ref.process < 0) continue;
      const bool read_there =
          std::any_of(check.findings.begin(), check.findings.end(),
                      [&](const Overwrite& finding) { return reads(run, finding, ref); });
      if (!read_there || pivot.kind == PivotKind::race) continue;
      pivot.kind = PivotKind::race;
      pivot.why.push_back({.kind = ReasonKind::reads_overwritten, .side = side});
    }
    if (moved || verdict.candidates.empty() || verdict.candidates[0].kind != PivotKind::race)
      continue;
    const EventRef& ref = side == 0 ? verdict.candidates[0].a : verdict.candidates[0].b;
    for (const Overwrite& finding : check.findings) {
      if (ref.process < 0 || !reads(run, finding, ref)) continue;
      move_to_first_use(run, side, finding, alignment, verdict);
      moved = true;
      break;
    }
  }
}

}  // namespace opguard
