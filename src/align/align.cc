#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "align/alignment.h"
#include "align/flow_pairs.h"
#include "align/sequence.h"
#include "align/slot_pairs.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

namespace opguard {
namespace {

uint64_t digest(const std::string& text) { return llvm::xxh3_64bits(llvm::StringRef(text)); }

// splitmix64's finaliser over a running state: order matters.
uint64_t mix(uint64_t state, uint64_t value) {
  uint64_t x = (state ^ value) + 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// The tokens of one log. Texts are digested once each; the two logs number them differently.
class Tokens {
 public:
  explicit Tokens(const ProcessLog& log) : log_(log) {
    for (const std::string& text : log.strings) strings_.push_back(digest(text));
    for (const Meta& meta : log.metas) {
      uint64_t h = digest(meta.dtype);
      for (int64_t size : meta.shape) h = mix(h, uint64_t(size));
      metas_.push_back(h);
    }
  }

  Token token(const Event& event) const {
    Token t;
    t.key = mix(mix(text(event.boundary), uint64_t(event.kind) << 8 | uint64_t(event.phase)),
                text(event.node));
    t.scalars = text(event.scalars);
    uint64_t outputs = mix(text(event.results), event.flags & kRaised);
    for (uint64_t i = event.first_slot; i < event.first_slot + event.slot_count; ++i) {
      const Slot& slot = log_.slots[i];
      if (slot.flags & kUnreadable) continue;
      // In any order, with any names: both runs hold the same parameters.
      const bool by_name = slots_by_name(event);
      const uint64_t place = uint64_t(slot.kind) << 16 | (by_name ? 0 : slot.index);
      const uint64_t meta = slot.meta == kNone ? 0 : metas_[slot.meta];
      t.shapes = by_name ? t.shapes + mix(place, meta) : mix(t.shapes, mix(place, meta));
      if (slot.flags & kUninitialised) continue;
      const uint64_t value = mix(mix(mix(place, meta), slot.value.h), slot.value.m);
      uint64_t& side = slot.kind == SlotKind::in ? t.inputs : outputs;
      side = by_name ? side + value : mix(side, value);
    }
    t.content = mix(mix(t.inputs, t.scalars), outputs);
    t.step = event.step;
    t.micro_batch = event.micro_batch;
    t.occurrence = event.occurrence;
    return t;
  }

 private:
  uint64_t text(uint32_t string) const { return string == kNone ? 0 : strings_[string]; }

  const ProcessLog& log_;
  std::vector<uint64_t> strings_, metas_;
};

uint32_t threads(const ProcessLog& log) {
  uint32_t count = 0;
  for (const Event& event : log.events) count = std::max(count, event.thread + 1);
  return count;
}

// Event indices by sequence. Each thread is one where both sides have as many, since how threads
// interleave is chance; else the main thread is one and the others together are another.
std::map<uint32_t, std::vector<uint32_t>> sequences(const ProcessLog& log, bool by_thread) {
  std::map<uint32_t, std::vector<uint32_t>> result;
  for (uint32_t i = 0; i < log.events.size(); ++i) {
    const uint32_t thread = log.events[i].thread;
    result[by_thread ? thread : std::min(thread, 1u)].push_back(i);
  }
  return result;
}

void align_processes(const ProcessLog& a, const ProcessLog& b, uint32_t index,
                     ProcessPair& result) {
  const Tokens tokens_a(a), tokens_b(b);
  const bool by_thread = threads(a) == threads(b);
  auto sequences_a = sequences(a, by_thread), sequences_b = sequences(b, by_thread);
  std::vector<bool> paired_a(a.events.size()), paired_b(b.events.size());
  for (const auto& [thread, events_a] : sequences_a) {
    const std::vector<uint32_t>& events_b = sequences_b[thread];
    std::vector<Token> ta, tb;
    for (uint32_t event : events_a) ta.push_back(tokens_a.token(a.events[event]));
    for (uint32_t event : events_b) tb.push_back(tokens_b.token(b.events[event]));
    const Matches ordered = align_sequences(ta, tb);
    for (auto [i, j, moved] : pair_by_flow({a, events_a, ta}, {b, events_b, tb}, ordered)) {
      const uint32_t ea = events_a[i], eb = events_b[j];
      paired_a[ea] = paired_b[eb] = true;
      result.pairs.push_back({index, ea, eb, double(pair_score(ta[i], tb[j])) / kMaxScore,
                              compare_events(a, a.events[ea], b, b.events[eb]), moved});
    }
  }
  std::sort(result.pairs.begin(), result.pairs.end(),
            [](const Pair& x, const Pair& y) { return x.a < y.a; });
  for (uint32_t i = 0; i < paired_a.size(); ++i)
    if (!paired_a[i]) result.only_a.push_back(i);
  for (uint32_t j = 0; j < paired_b.size(); ++j)
    if (!paired_b[j]) result.only_b.push_back(j);
}

// Process indices by (rank, ordinal among the processes of that rank).
std::map<std::pair<int32_t, uint32_t>, int32_t> places(const Run& run) {
  std::map<int32_t, uint32_t> seen;
  std::map<std::pair<int32_t, uint32_t>, int32_t> result;
  for (size_t i = 0; i < run.processes.size(); ++i) {
    const int32_t rank = run.processes[i].rank;
    result[{rank, seen[rank]++}] = int32_t(i);
  }
  return result;
}

void all_events(const Run& run, int32_t process, std::vector<uint32_t>& only) {
  for (uint32_t i = 0; i < run.processes[process].events.size(); ++i) only.push_back(i);
}

bool lost_records(const Run& run) {
  for (const ProcessLog& log : run.processes)
    if (log.lost > 0) return true;
  return false;
}

}  // namespace

std::vector<const Pair*> pairs_in_order(const Run& a, const Alignment& alignment) {
  std::vector<const Pair*> order;
  for (const ProcessPair& process : alignment.processes)
    for (const Pair& pair : process.pairs) order.push_back(&pair);
  auto step = [&](const Pair* pair) {
    return a.processes[alignment.processes[pair->process].a].events[pair->a].step;
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](const Pair* x, const Pair* y) { return step(x) < step(y); });
  return order;
}

Alignment align_runs(const Run& a, const Run& b) {
  Alignment result;
  auto places_a = places(a), places_b = places(b);
  std::map<std::pair<int32_t, uint32_t>, std::pair<int32_t, int32_t>> both;
  for (auto [place, i] : places_a) both[place] = {i, -1};
  for (auto [place, i] : places_b)
    both.try_emplace(place, std::pair<int32_t, int32_t>{-1, -1}).first->second.second = i;
  for (const auto& [place, sides] : both) {
    ProcessPair pair{sides.first, sides.second, {}, {}, {}};
    if (pair.a >= 0 && pair.b >= 0) {
      align_processes(a.processes[pair.a], b.processes[pair.b], result.processes.size(), pair);
    } else if (pair.a >= 0) {
      all_events(a, pair.a, pair.only_a);
    } else {
      all_events(b, pair.b, pair.only_b);
    }
    result.pairs += pair.pairs.size();
    for (const Pair& p : pair.pairs) result.unequal += p.equality != Equality::equal;
    result.processes.push_back(std::move(pair));
  }
  // Nothing is certified across a hole, and where lost records were is not known.
  if (!lost_records(a) && !lost_records(b)) {
    for (const Pair* pair : pairs_in_order(a, result)) {
      if (pair->equality != Equality::equal) break;
      ++result.certified_prefix;
    }
  }
  return result;
}

std::string dump(const Alignment& alignment, const Run& a, const Run& b) {
  std::string text;
  llvm::raw_string_ostream out(text);
  auto line = [&](const char* mark, const ProcessLog& log, uint32_t index) {
    const Event& event = log.events[index];
    out << mark << ' ' << index << ' ' << log.text(event.boundary) << " step " << event.step
        << " occurrence " << event.occurrence << '\n';
  };
  for (const ProcessPair& process : alignment.processes) {
    out << "process " << process.a << ' ' << process.b << '\n';
    for (const Pair& pair : process.pairs) {
      const ProcessLog& log = a.processes[process.a];
      out << "= " << pair.a << ' ' << pair.b << ' ' << log.text(log.events[pair.a].boundary) << ' '
          << equality_name(pair.equality) << (pair.moved ? " moved" : "") << '\n';
    }
    for (uint32_t event : process.only_a) line("<", a.processes[process.a], event);
    for (uint32_t event : process.only_b) line(">", b.processes[process.b], event);
  }
  out << "pairs " << alignment.pairs << ", unequal " << alignment.unequal << ", certified "
      << alignment.certified_prefix << '\n';
  return text;
}

}  // namespace opguard
