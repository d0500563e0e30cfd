// First a range of events for each generator, then the first write in it that the runs do
// otherwise.
//
//   state records    event 0 equal, event 40 equal, event 91 differs
//   range            behind the last equal one, before the one that differs: events 41 to 90
//
// A seeding since then moves the beginning up: what was drawn before it has no part in what is
// drawn behind. Only generators of the asked family are looked at: `np.random.seed` moves no
// torch.cpu.
//
// Counterexample: a draw that gives other numbers of one shape. It wrote the generator as the other
// run's did, so the cause lies before it.
#include "align/judge/generator_writes.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "align/pair/slot_pairs.h"
#include "operators/operators.h"
#include "record/kept_values.h"

namespace opguard {
namespace {

const ProcessPair* pairs_of(const Evidence& evidence, const EventRef& a, const EventRef& b) {
  for (const ProcessPair& both : evidence.timeline.alignment().processes)
    if (both.a == a.process && both.b == b.process) return &both;
  return nullptr;
}

// Over which events a generator's states parted, or may have: [begin, end) of each side.
struct EventRange {
  uint32_t begin[2] = {0, 0}, end[2] = {0, 0};
};

// `torch.cuda.manual_seed_all(1)` is no business of "torch.cpu": functions for all devices of a
// kind stand in that kind's module. `torch.manual_seed` seeds every generator of torch.
bool of_another_device(std::string_view path, std::string_view function,
                       std::string_view generator) {
  constexpr std::string_view kTorch = "torch.";
  constexpr std::array<std::string_view, 9> kDevices = {"cuda", "xpu", "mps",  "npu",   "mlu",
                                                        "musa", "hpu", "sdaa", "neuron"};
  if (!generator.starts_with(kTorch)) return false;
  const std::string_view device =
      generator.substr(kTorch.size(), generator.find(':') - kTorch.size());
  const std::string_view of = path.substr(path.rfind('.') + 1);  // npos + 1 is 0
  if (std::find(kDevices.begin(), kDevices.end(), of) != kDevices.end()) return of != device;
  return function.ends_with("_all") && device == "cpu";
}

// Whether a function of this name can have moved the generator: `random.seed` is Python's own.
bool of_family(const std::string& callee, const std::string& generator) {
  const std::string path = callee.substr(0, std::min(callee.rfind('.'), callee.size()));
  if (of_another_device(path, std::string_view(callee).substr(callee.rfind('.') + 1), generator))
    return false;
  const bool numpy = path == "np.random" || path == "numpy.random";
  const bool python = path == "random";
  return generator == "numpy" ? !python : generator == "python" ? !numpy : !numpy && !python;
}

// The last event before `before` that seeds the generator: what it was until then has no part in
// what is drawn. kNone: nobody seeds it.
uint32_t last_seeding(const Evidence& evidence, int side, const EventRef& before,
                      const std::string& generator) {
  const EventTable& events = evidence.log(side, before).events;
  std::unordered_map<uint32_t, bool> seeding;  // by boundary: names are looked up once
  for (uint32_t i = before.event; i-- > 0;) {
    if (events.kind(i) != EventKind::op) continue;
    const EventRef ref{before.process, i};
    auto [at, fresh] = seeding.try_emplace(events[i].boundary, false);
    if (fresh) {
      const std::string callee = evidence.callee(side, ref);
      at->second = seeds_random(callee) && of_family(callee, generator);
    }
    if (at->second) return i;
  }
  return kNone;
}

// Per generator: from its last record before (a, b) that agrees, or where it was seeded since, to
// its first that differs. Where none differs, to (a, b): what one run drew besides has a record of
// its own that pairs with none.
std::map<std::string, EventRange> partings(const Evidence& evidence, const ProcessPair& both,
                                           const EventRef& a, const EventRef& b) {
  const ProcessLog &log_a = evidence.log(0, a), &log_b = evidence.log(1, b);
  std::map<std::string, EventRange> found, seeded;
  std::set<std::string> parted;
  for (const Pair& pair : both.pairs) {
    if (pair.a >= a.event || pair.b >= b.event) continue;
    if (log_a.events.kind(pair.a) != EventKind::state || pair.equality == Equality::hidden)
      continue;
    const Event x = log_a.events[pair.a], y = log_b.events[pair.b];
    if (keeps_values(log_a.text(x.boundary))) continue;
    for (const SlotPair& slot : pair_slots(log_a, x, log_b, y)) {
      if (!slot.a || !slot.b || ((slot.a->flags | slot.b->flags) & kUnreadable)) continue;
      const std::string& name = log_a.text(slot.a->name);
      auto [since, fresh] = seeded.try_emplace(name);
      if (fresh) {
        for (int side : {0, 1}) {
          const uint32_t seeding = last_seeding(evidence, side, side == 0 ? a : b, name);
          since->second.begin[side] = seeding == kNone ? 0 : seeding;
        }
        since->second.end[0] = a.event, since->second.end[1] = b.event;
        found[name] = since->second;
      }
      // torch seeds its own generator by chance when a process begins.
      if (pair.a < since->second.begin[0] || pair.b < since->second.begin[1]) continue;
      if (same_bytes(*slot.a, *slot.b)) {
        found[name] = {{pair.a + 1, pair.b + 1}, {a.event, b.event}};
        parted.erase(name);
      } else if (parted.insert(name).second) {
        EventRange& range = found[name];
        range.end[0] = pair.a, range.end[1] = pair.b;
      }
    }
  }
  return found;
}

bool writes(const Evidence& evidence, int side, const EventRef& ref, const std::string& generator) {
  if (evidence.event(side, ref).kind == EventKind::state) return false;
  if (evidence.given_generator(side, ref)) return false;
  const std::string callee = evidence.callee(side, ref);
  return (evidence.draws(side, ref) || seeds_random(callee)) && of_family(callee, generator);
}

// A seeding with other arguments, or a draw of another shape. A draw that only gives other numbers
// shows that the generator had parted before.
bool differs(const Evidence& evidence, const EventRef& a, const EventRef& b) {
  const ProcessLog &log_a = evidence.log(0, a), &log_b = evidence.log(1, b);
  const Event x = evidence.event(0, a), y = evidence.event(1, b);
  if (log_a.text(x.scalars) != log_b.text(y.scalars)) return true;
  const bool seeds = seeds_random(evidence.callee(0, a));
  for (const SlotPair& slot : pair_slots(log_a, x, log_b, y)) {
    if (!slot.a || !slot.b) return true;
    if (slot.a->kind == SlotKind::in && seeds && !same_bytes(*slot.a, *slot.b)) return true;
    if (!same_shape(log_a, *slot.a, log_b, *slot.b)) return true;
  }
  return false;
}

}  // namespace

std::optional<GeneratorWrite> generator_write(const Evidence& evidence, const EventRef& a,
                                              const EventRef& b, const std::string& generator) {
  if (a.process < 0 || b.process < 0) return std::nullopt;
  const ProcessPair* both = pairs_of(evidence, a, b);
  if (!both) return std::nullopt;
  std::optional<GeneratorWrite> first;
  Position at;
  auto take = [&](int side, const EventRef& ref, const EventRef& partner) {
    const Position position = evidence.position(side, ref);
    if (first && at <= position) return;
    first.emplace();
    first->refs[side] = ref;
    first->refs[1 - side] = partner;
    at = position;
  };
  // The writes of a range that one run alone makes, or makes otherwise.
  auto look = [&](const EventRange& range, auto&& is_write) {
    for (int side : {0, 1})
      for (uint32_t i = range.begin[side]; i < range.end[side]; ++i) {
        const EventRef ref{side == 0 ? a.process : b.process, i};
        // A resumed run has not made the steps before: what they drew is in its checkpoint.
        if (evidence.besides(side, ref) || !is_write(side, ref)) continue;
        const EventRef partner = evidence.partner(side, ref);
        if (partner.process < 0 || (side == 0 && differs(evidence, ref, partner)))
          take(side, ref, partner);
      }
  };
  if (generator.empty() && evidence.given_generator(0, a) && evidence.given_generator(1, b)) {
    look({{0, 0}, {a.event, b.event}}, [&](int side, const EventRef& ref) {
      return evidence.draws(side, ref) && evidence.given_generator(side, ref);
    });
    return first;
  }
  for (const auto& [name, range] : partings(evidence, *both, a, b)) {
    if (generator.empty() ? name == "python" || name == "numpy" : name != generator) continue;
    look(range, [&](int side, const EventRef& ref) { return writes(evidence, side, ref, name); });
  }
  return first;
}

}  // namespace opguard
