// Two runs -> which of their events are the same boundary's.
//
// Processes are paired by rank, their steps by steps.h, and then the events of each thread by
// themselves. Equal beginnings and ends of a thread are taken as they stand, without a token. What
// is left is cut into pieces of kTogether events, and each event gets a token. Then sequence.h
// pairs the tokens in order. Then flow_pairs.h mends that by who made what was read.
//
//   a   40 pairs equal | relu  | 12 pairs     the middle alone costs more than one comparison
//   b   40 pairs equal | gelu  | 12 pairs
//
// Threads are sequences of their own where both runs have as many. Where they have not, all threads
// but the first are one: how they interleave is chance.
//
// The cost: one comparison an event where runs are equal (bench/align_scale.py). A piece is
// bounded, so that its slots are decoded once (record/slot_table.h).
#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "align/pair/alignment.h"
#include "align/pair/equal_events.h"
#include "align/pair/flow_pairs.h"
#include "align/pair/mix.h"
#include "align/pair/sequence.h"
#include "align/pair/slot_pairs.h"
#include "align/pair/step_events.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include "record/kept_values.h"
#include "support/parallel.h"

namespace opguard {
namespace {

uint64_t digest(const std::string& text) { return llvm::xxh3_64bits(llvm::StringRef(text)); }

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
    const EventSlots slots = log_.slots_of(event);
    for (const Slot& slot : slots) {
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
  for (uint64_t i = 0; i < log.events.size(); ++i)
    count = std::max(count, log.events.thread(i) + 1);
  return count;
}

// Event indices by sequence, but for those that the other run has none of. Each thread is one where
// both sides have as many, since how threads interleave is chance. Else the main thread is one and
// the others together are another.
std::map<uint32_t, std::vector<uint32_t>> sequences(const ProcessLog& log, const StepEvents& steps,
                                                    bool by_thread) {
  std::map<uint32_t, std::vector<uint32_t>> result;
  for (uint32_t i = 0; i < log.events.size(); ++i) {
    if (!steps.takes_part(i)) continue;
    const uint32_t thread = log.events.thread(i);
    result[by_thread ? thread : std::min(thread, 1u)].push_back(i);
  }
  return result;
}

// Events of a sequence that are aligned together, at most, where steps allow a cut: few enough that
// their slots are decoded once (record/slot_table.h). Smaller logs are one piece.
constexpr size_t kTogether = 1 << 14;

// One thread of one process on both sides.
class SequencePairing {
 public:
  SequencePairing(const ProcessLog& a, const std::vector<uint32_t>& events_a, const ProcessLog& b,
                  const std::vector<uint32_t>& events_b, const StepEvents (&steps)[2],
                  uint32_t process, ProcessPair& result)
      : logs_{&a, &b},
        events_{&events_a, &events_b},
        steps_{&steps[0], &steps[1]},
        tokens_{Tokens(a), Tokens(b)},
        equal_(a, b),
        process_(process),
        result_(result) {}

  void run() {
    size_t begin[2] = {0, 0}, end[2] = {events_[0]->size(), events_[1]->size()};
    result_.pairs.reserve(result_.pairs.size() + std::min(end[0], end[1]));
    // The usual case, and all there is to do where it holds: no token is made.
    while (begin[0] < end[0] && begin[1] < end[1] &&
           equal_.same(event(0, begin[0]), event(1, begin[1])))
      add(begin[0]++, begin[1]++, kMaxScore, false);
    while (begin[0] < end[0] && begin[1] < end[1] &&
           equal_.same(event(0, end[0] - 1), event(1, end[1] - 1)))
      add(--end[0], --end[1], kMaxScore, false);
    const bool may_cut = steps_increase(0, begin[0], end[0]) && steps_increase(1, begin[1], end[1]);
    while (begin[0] < end[0] && begin[1] < end[1]) {
      size_t to[2] = {end[0], end[1]};
      if (may_cut) cut(begin, end, to);
      align_piece(begin, to);
      begin[0] = to[0];
      begin[1] = to[1];
    }
  }

 private:
  // As the two sides count in common.
  Event event(int side, size_t at) const { return steps_[side]->event((*events_[side])[at]); }
  uint32_t step(int side, size_t at) const { return steps_[side]->step((*events_[side])[at]); }

  bool steps_increase(int side, size_t begin, size_t end) const {
    for (size_t i = begin + 1; i < end; ++i)
      if (step(side, i) < step(side, i - 1)) return false;
    return true;
  }

  // The first border between steps behind kTogether events of either side.
  void cut(const size_t (&begin)[2], const size_t (&end)[2], size_t (&to)[2]) const {
    for (int side : {0, 1}) {
      if (end[side] - begin[side] <= kTogether) continue;
      const uint32_t last = step(side, begin[side] + kTogether - 1);
      for (int each : {0, 1}) {
        auto at = std::partition_point(events_[each]->begin() + begin[each],
                                       events_[each]->begin() + to[each],
                                       [&](uint32_t e) { return steps_[each]->step(e) <= last; });
        to[each] = size_t(at - events_[each]->begin());
      }
    }
  }

  void align_piece(const size_t (&begin)[2], const size_t (&end)[2]) {
    std::vector<Token> tokens[2];
    std::vector<uint32_t> events[2];
    for (int side : {0, 1}) {
      events[side].assign(events_[side]->begin() + begin[side], events_[side]->begin() + end[side]);
      tokens[side].reserve(events[side].size());
      for (uint32_t e : events[side])
        tokens[side].push_back(tokens_[side].token(steps_[side]->event(e)));
    }
    const Matches ordered = align_sequences(tokens[0], tokens[1]);
    for (auto [i, j, moved] : pair_by_flow({*logs_[0], events[0], tokens[0]},
                                           {*logs_[1], events[1], tokens[1]}, ordered))
      add(begin[0] + i, begin[1] + j, pair_score(tokens[0][i], tokens[1][j]), moved);
  }

  void add(size_t i, size_t j, int score, bool moved) {
    const Event &a = event(0, i), &b = event(1, j);
    const Equality equality =
        equal_.values(a, b) ? Equality::equal : compare_events(*logs_[0], a, *logs_[1], b);
    result_.pairs.push_back(
        {process_, (*events_[0])[i], (*events_[1])[j], float(score) / kMaxScore, equality, moved});
  }

  const ProcessLog* logs_[2];
  const std::vector<uint32_t>* events_[2];
  const StepEvents* steps_[2];
  const Tokens tokens_[2];
  const EqualEvents equal_;
  uint32_t process_;
  ProcessPair& result_;
};

std::vector<uint32_t> unpaired(size_t events, const std::vector<Pair>& pairs,
                               uint32_t Pair::* side) {
  std::vector<bool> paired(events);
  for (const Pair& pair : pairs) paired[pair.*side] = true;
  std::vector<uint32_t> rest;
  for (uint32_t i = 0; i < events; ++i)
    if (!paired[i]) rest.push_back(i);
  return rest;
}

void align_processes(const ProcessLog& a, const ProcessLog& b, uint32_t index,
                     ProcessPair& result) {
  const bool by_thread = threads(a) == threads(b);
  const StepEvents steps[2] = {StepEvents(a, result.steps, 0), StepEvents(b, result.steps, 1)};
  auto sequences_a = sequences(a, steps[0], by_thread),
       sequences_b = sequences(b, steps[1], by_thread);
  for (const auto& [thread, events_a] : sequences_a)
    SequencePairing(a, events_a, b, sequences_b[thread], steps, index, result).run();
  auto by_a = [](const Pair& x, const Pair& y) { return x.a < y.a; };
  if (!std::is_sorted(result.pairs.begin(), result.pairs.end(), by_a))
    std::sort(result.pairs.begin(), result.pairs.end(), by_a);
  result.only_a = unpaired(a.events.size(), result.pairs, &Pair::a);
  result.only_b = unpaired(b.events.size(), result.pairs, &Pair::b);
  if (result.steps.by_number()) return;
  result.besides_a = steps[0].take_besides(result.pairs, &Pair::a, result.only_a);
  result.besides_b = steps[1].take_besides(result.pairs, &Pair::b, result.only_b);
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
    return a.processes[alignment.processes[pair->process].a].events.step(pair->a);
  };
  auto earlier = [&](const Pair* x, const Pair* y) { return step(x) < step(y); };
  if (!std::is_sorted(order.begin(), order.end(), earlier))
    std::stable_sort(order.begin(), order.end(), earlier);
  return order;
}

bool passed_over(const Run& a, const Alignment& alignment, const Pair& pair) {
  if (pair.equality == Equality::hidden) return true;
  const ProcessPair& process = alignment.processes[pair.process];
  const ProcessLog& log = a.processes[process.a];
  return log.events.kind(pair.a) == EventKind::state &&
         !keeps_values(log.text(log.events[pair.a].boundary));
}

uint64_t certified_prefix(const Run& a, const Run& b, const Alignment& alignment) {
  // Nothing is certified across a hole, and where lost records were is not known.
  if (lost_records(a) || lost_records(b)) return 0;
  uint64_t count = 0;
  for (const Pair* pair : pairs_in_order(a, alignment)) {
    if (pair->equality == Equality::equal)
      ++count;
    else if (!passed_over(a, alignment, *pair))
      break;
  }
  return count;
}

const Pair* last_certified(const Run& a, const Alignment& alignment) {
  uint64_t left = alignment.certified_prefix;
  if (left == 0) return nullptr;
  for (const Pair* pair : pairs_in_order(a, alignment))
    if (pair->equality == Equality::equal && --left == 0) return pair;
  return nullptr;
}

namespace {

// Processes of both sides by rank and place among those of the rank.
Alignment paired_processes(const Run& a, const Run& b) {
  Alignment result;
  auto places_a = places(a), places_b = places(b);
  std::map<std::pair<int32_t, uint32_t>, std::pair<int32_t, int32_t>> both;
  for (auto [place, i] : places_a) both[place] = {i, -1};
  for (auto [place, i] : places_b)
    both.try_emplace(place, std::pair<int32_t, int32_t>{-1, -1}).first->second.second = i;
  for (const auto& [place, sides] : both)
    result.processes.push_back({sides.first, sides.second, {}, {}, {}});
  return result;
}

// The ranks of a job go step by step together: what tells of one tells of all.
void pair_steps_of(const Run& a, const Run& b, std::vector<ProcessPair>& processes) {
  std::map<uint32_t, std::vector<ProcessPair*>> jobs;  // by place among the processes of a rank
  std::map<int32_t, uint32_t> seen;
  for (ProcessPair& both : processes) {
    const int32_t rank = both.a >= 0 ? a.processes[both.a].rank : b.processes[both.b].rank;
    const uint32_t place = seen[rank]++;
    if (both.a >= 0 && both.b >= 0) jobs[place].push_back(&both);
  }
  for (const auto& [place, job] : jobs) {
    SteppingProcesses stepping;
    for (const ProcessPair* both : job) {
      stepping.a.push_back(&a.processes[both->a]);
      stepping.b.push_back(&b.processes[both->b]);
    }
    const StepPairs steps = pair_steps(stepping);
    for (ProcessPair* both : job) both->steps = steps;
  }
}

Alignment align_paired(const Run& a, const Run& b, Alignment result) {
  parallel_for(result.processes.size(), [&](size_t i) {
    ProcessPair& pair = result.processes[i];
    if (pair.a >= 0 && pair.b >= 0)
      align_processes(a.processes[pair.a], b.processes[pair.b], uint32_t(i), pair);
    else if (pair.a >= 0)
      all_events(a, pair.a, pair.only_a);
    else
      all_events(b, pair.b, pair.only_b);
  });
  for (const ProcessPair& process : result.processes) {
    result.pairs += process.pairs.size();
    for (const Pair& pair : process.pairs) result.unequal += pair.equality != Equality::equal;
  }
  result.certified_prefix = certified_prefix(a, b, result);
  return result;
}

}  // namespace

Alignment align_runs(const Run& a, const Run& b) {
  Alignment result = paired_processes(a, b);
  // Before any event: what one run does besides has no partner to be looked for.
  pair_steps_of(a, b, result.processes);
  return align_paired(a, b, std::move(result));
}

Alignment align_runs(const Run& a, const Run& b, const Alignment& like) {
  Alignment result = paired_processes(a, b);
  for (size_t i = 0; i < std::min(result.processes.size(), like.processes.size()); ++i)
    result.processes[i].steps = like.processes[i].steps;
  return align_paired(a, b, std::move(result));
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
