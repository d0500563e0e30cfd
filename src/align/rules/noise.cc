// Three sources of sites, all entered in one table by the rule that names them.
//
//   walk_back()      origins of all values that only one run holds, on both sides
//   add_alone()      an operator of one run alone that reads nothing new: control flow
//   add_unequal()    pairs that differ by themselves, though no value of theirs is new
//
//   "model.index_add:77ab:out/out0,kind=op,phase=forward"     times 8, the earliest is shown
//
// A number is explained if both runs show the same origin. Within a day of the log's start it is a
// wall clock, within a minute of the event's own clock a monotonic one. One that is the process's
// number, or lies where Linux puts memory, is that.
//
// Counterexample: a number that some operator handed out before. It is noise from there, and no
// site.
#include "align/rules/noise.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "align/judge/blame.h"
#include "align/judge/pivot_view.h"
#include "align/judge/random_state.h"
#include "align/judge/value_flow.h"
#include "align/pair/difference.h"
#include "align/pair/timeline.h"
#include "align/values/model_values.h"
#include "operators/operators.h"

namespace opguard {
namespace {

// What a number is, as far as both runs show it.
class NumberOrigin {
 public:
  NumberOrigin(const ProcessLog& log, const Event& event) : log_(log), event_(event) {}

  // None where nothing tells.
  std::optional<ReasonKind> of(const std::string& text) const {
    double value = 0;
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code != std::errc() || end != text.data() + text.size() || value < 1) return {};
    constexpr double kDay = 86400e9, kMinute = 60e9;
    for (double unit : {1e9, 1e6, 1e3, 1.0}) {
      if (std::fabs(value * unit - double(log_.start_ns)) < kDay) return ReasonKind::wall_clock;
      // time.perf_counter() and time.monotonic() are the log's own clock.
      if (double(event_.start_ns) > kMinute &&
          std::fabs(value * unit - double(event_.start_ns)) < kMinute)
        return ReasonKind::monotonic_clock;
    }
    const bool whole = text.find_first_not_of("0123456789") == text.npos;
    if (!whole) return {};
    const uint64_t number = uint64_t(value);
    if (int64_t(number) == log_.pid) return ReasonKind::process_number;
    // Where Linux puts heaps, libraries and stacks.
    if (number % 8 == 0 && number >> 32 != 0 && number >> 47 == 0) return ReasonKind::address;
    return {};
  }

 private:
  const ProcessLog& log_;
  const Event& event_;
};

// "arg1=3, flag=True" by name.
std::map<std::string, std::string> items_of(const std::string& text) {
  std::map<std::string, std::string> items;
  for (const std::string& item : split_scalars(text)) {
    const size_t equal = item.find('=');
    items[item.substr(0, equal)] = equal == item.npos ? "" : item.substr(equal + 1);
  }
  return items;
}

class NoiseSearch {
 public:
  NoiseSearch(const Run& a, const Run& b, const Alignment& alignment)
      : timeline_(a, b, alignment),
        index_{ValueIndex(a), ValueIndex(b)},
        blame_(timeline_, index_[0], index_[1]) {}

  std::vector<NoiseSite> sites() {
    for (const StateDifference& state :
         state_differences(timeline_.run(0), timeline_.run(1), timeline_.alignment()))
      if (!matters(state)) idle_.insert({state.a.process, state.generator});
    walk_back();
    for (const ProcessPair& both : timeline_.alignment().processes)
      for (const Pair& pair : both.pairs)
        add_unequal({both.a, pair.a}, {both.b, pair.b}, pair.equality);
    std::vector<NoiseSite> all;
    for (auto& [text, found] : found_) all.push_back(std::move(found.site));
    auto order = [&](const NoiseSite& site) {
      const int side = site.pivot.a.process >= 0 ? 0 : 1;
      const EventRef& ref = side == 0 ? site.pivot.a : site.pivot.b;
      return std::pair(event(side, ref).kind == EventKind::state, timeline_.position(side, ref));
    };
    std::stable_sort(all.begin(), all.end(),
                     [&](const NoiseSite& x, const NoiseSite& y) { return order(x) < order(y); });
    return all;
  }

  // What programs hand to Python that differs: loss.item().
  std::vector<NoiseSite> numbers() {
    for (const ProcessPair& both : timeline_.alignment().processes)
      for (const Pair& pair : both.pairs) {
        if (pair.equality == Equality::equal || pair.equality == Equality::hidden) continue;
        const EventRef a{both.a, pair.a}, b{both.b, pair.b};
        if (!reports_number(log(0, a), event(0, a)) || !reports_number(log(1, b), event(1, b)))
          continue;
        for (const SlotPair& slot :
             SlotDifferences(log(0, a), event(0, a), log(1, b), event(1, b)).slots)
          if (slot.a)
            add(a, b, "in/" + log(0, a).text(slot.a->name), uint32_t(slot.at_a), PivotKind::input,
                {{ReasonKind::number_from_noise}});
      }
    std::vector<NoiseSite> all;
    for (auto& [text, found] : found_) all.push_back(std::move(found.site));
    return all;
  }

 private:
  const ProcessLog& log(int side, const EventRef& ref) const { return timeline_.log(side, ref); }
  Event event(int side, const EventRef& ref) const { return timeline_.event(side, ref); }

  // Where values that only one run holds come from, over all that differs.
  void walk_back() {
    for (int side : {0, 1}) {
      FlowOptions options;
      options.one_sided = [this, side](const EventRef& ref) {
        return timeline_.partner(side, ref).process < 0;
      };
      Flow flow(index_[side], index_[1 - side], options);
      std::vector<SlotRef> sinks;
      auto add_sinks = [&](const EventRef& ref) {
        const Event e = event(side, ref);
        if (e.kind == EventKind::state) return;
        const EventSlots slots = log(side, ref).slots_of(e);
        for (const Slot& slot : slots)
          if (flow.novel(ref, slot)) sinks.push_back({ref, slots.index_of(slot)});
      };
      for (const ProcessPair& both : timeline_.alignment().processes) {
        const int32_t process = side == 0 ? both.a : both.b;
        for (const Pair& pair : both.pairs)
          if (pair.equality != Equality::equal) add_sinks({process, side == 0 ? pair.a : pair.b});
        for (uint32_t e : side == 0 ? both.only_a : both.only_b) {
          add_sinks({process, e});
          alone_.push_back({side, {process, e}});
        }
      }
      for (const Origin& origin : flow.origins(sinks)) add_origin(side, origin);
      // Alone, on values both runs know: control flow that is not the same.
      for (const auto& [where, ref] : alone_)
        if (where == side && event(side, ref).kind != EventKind::state &&
            !reads_novel(flow, side, ref))
          add_alone(side, ref);
    }
  }

  bool reads_novel(const Flow& flow, int side, const EventRef& ref) const {
    const Event e = event(side, ref);
    for (const Slot& slot : log(side, ref).slots_of(e))
      if (slot.kind == SlotKind::in && flow.novel(ref, slot)) return true;
    return false;
  }

  // A hole is a value that nobody recorded made: a race, or from outside.
  void add_origin(int side, const Origin& origin) {
    EventRef refs[2];
    refs[side] = origin.event;
    refs[1 - side] = timeline_.partner(side, origin.event);
    if (refs[1 - side].process < 0) return add_alone(side, origin.event);
    if (!origin.hole) return add_pair(refs[0], refs[1]);
    EventRef raced[2] = {refs[0], refs[1]};
    Heuristics by;
    const bool race = blame_.settle(raced, true, true, by) == PivotKind::race;
    const Slot slot = log(side, origin.event).slots[origin.slot];
    Reasons why = {{race ? ReasonKind::race : ReasonKind::from_outside}};
    if (const Reasons states = states_before(refs[0], refs[1]); !race && !states.empty()) {
      why.insert(why.begin(), {ReasonKind::rng_state});
      why.insert(why.end(), states.begin(), states.end());
    }
    add(refs[0], refs[1], "in/" + log(side, origin.event).text(slot.name), uint32_t(origin.slot),
        race ? PivotKind::race : PivotKind::input, why);
  }

  void add_alone(int side, const EventRef& ref) {
    EventRef refs[2];
    refs[side] = ref;
    add(refs[0], refs[1], "", kNone, PivotKind::structure, {{ReasonKind::varies_in_count}});
  }

  // A pair that differs by itself, whether its values are novel or not.
  void add_unequal(const EventRef& a, const EventRef& b, Equality equality) {
    if (equality == Equality::equal || equality == Equality::hidden) return;
    if (event(0, a).kind == EventKind::state) return add_states(a, b);
    if (equality == Equality::inputs) return;
    add_pair(a, b);
  }

  void add_states(const EventRef& a, const EventRef& b) {
    const ProcessLog &x = log(0, a), &y = log(1, b);
    for (const SlotPair& slot : pair_slots(x, event(0, a), y, event(1, b)))
      if (slot.a && slot.b && !same_bytes(*slot.a, *slot.b)) {
        const std::string& name = x.text(slot.a->name);
        const bool idle = idle_.contains({a.process, name});
        NoiseSite* site =
            add(a, b, "in/" + name, uint32_t(slot.at_a), PivotKind::input,
                {{ReasonKind::rng_state},
                 {.kind = idle ? ReasonKind::idle_generator : ReasonKind::unlike_generator,
                  .names = {name}}});
        if (site) site->idle = idle;
      }
  }

  void add_pair(const EventRef& a, const EventRef& b) {
    // Together with its partner, from whichever side it was reached.
    if (!done_.insert(Flow::id(a)).second) return;
    const ProcessLog &x = log(0, a), &y = log(1, b);
    const Event ea = event(0, a), eb = event(1, b);
    const Equality equality = compare_events(x, ea, y, eb);
    if (equality == Equality::scalars) return add_scalars(a, b);
    const SlotDifferences differences(x, ea, y, eb);
    const bool results = x.text(ea.results) != y.text(eb.results);
    for (const SlotPair& slot : differences.slots) {
      const Slot& any = slot.either();
      const bool input = any.kind == SlotKind::in;
      if (input != (equality == Equality::inputs) && equality != Equality::shape) continue;
      const ProcessLog& own = slot.a ? x : y;
      const char* kind = input ? "in/" : any.kind == SlotKind::out ? "out/" : "written/";
      const uint32_t index = uint32_t(slot.b ? slot.at_b : slot.at_a);
      add(a, b, kind + own.text(any.name), index, kind_of(equality),
          result_reason(a, b, slot, equality));
    }
    if (results && equality != Equality::inputs)
      for (const std::string& name : differing(x.text(ea.results), y.text(eb.results)))
        add(a, b, "result/" + name, kNone, PivotKind::value,
            number_reason(a, b, ea.results, eb.results, name));
  }

  static PivotKind kind_of(Equality equality) {
    return equality == Equality::inputs  ? PivotKind::input
           : equality == Equality::shape ? PivotKind::structure
                                         : PivotKind::value;
  }

  static std::vector<std::string> differing(const std::string& a, const std::string& b) {
    const auto in_a = items_of(a), in_b = items_of(b);
    std::vector<std::string> names;
    for (const auto& [name, value] : in_a)
      if (auto at = in_b.find(name); at == in_b.end() || at->second != value) names.push_back(name);
    for (const auto& [name, value] : in_b)
      if (!in_a.contains(name)) names.push_back(name);
    return names;
  }

  void add_scalars(const EventRef& a, const EventRef& b) {
    const Event ea = event(0, a), eb = event(1, b);
    for (const std::string& name :
         differing(log(0, a).text(ea.scalars), log(1, b).text(eb.scalars))) {
      if (from_results(0, a, ea.scalars, name) || from_results(1, b, eb.scalars, name)) continue;
      add(a, b, "scalar/" + name, kNone, PivotKind::scalar,
          number_reason(a, b, ea.scalars, eb.scalars, name));
    }
  }

  // A number that an operator gave out before, and not in the other run: noise from elsewhere.
  bool from_results(int side, const EventRef& ref, uint32_t text, const std::string& name) {
    const ProcessLog& l = log(side, ref);
    const auto items = items_of(l.text(text));
    const auto at = items.find(name);
    // Short ones are equal by chance.
    if (at == items.end() || at->second.size() < 3) return false;
    const auto [results, fresh] = results_[side].try_emplace(ref.process);
    if (fresh)
      for (uint32_t i = 0; i < l.events.size(); ++i)
        for (const auto& [result, value] : items_of(l.text(l.events[i].results)))
          results->second.try_emplace(value, i);
    const auto given = results->second.find(at->second);
    return given != results->second.end() && given->second < ref.event;
  }

  Reasons states_before(const EventRef& a, const EventRef& b) const {
    return random_state_difference(timeline_.run(0), a, timeline_.run(1), b);
  }

  Reasons number_reason(const EventRef& a, const EventRef& b, uint32_t text_a, uint32_t text_b,
                        const std::string& name) const {
    std::optional<ReasonKind> told[2];
    std::string values[2];
    const EventRef refs[2] = {a, b};
    for (int side : {0, 1}) {
      const auto items = items_of(log(side, refs[side]).text(side == 0 ? text_a : text_b));
      if (auto at = items.find(name); at != items.end()) values[side] = at->second;
      told[side] = NumberOrigin(log(side, refs[side]), event(side, refs[side])).of(values[side]);
    }
    const Reason shown{.kind = ReasonKind::in_each_run,
                       .names = {values[0].substr(0, 24), values[1].substr(0, 24)}};
    if (told[0] && told[0] == told[1]) return {{*told[0]}, shown};
    Reasons why = behind(ReasonKind::number_from_outside, states_before(a, b));
    why.push_back(shown);
    return why;
  }

  static Reasons behind(ReasonKind kind, const Reasons& more) {
    Reasons why = {{kind}};
    why.insert(why.end(), more.begin(), more.end());
    return why;
  }

  // From what is certain to what is left over: garbage, random numbers, ranks, order, no fixed
  // order.
  Reasons result_reason(const EventRef& a, const EventRef& b, const SlotPair& slot,
                        Equality equality) const {
    const ProcessLog& l = log(0, a);
    const Event e = event(0, a);
    if (equality == Equality::shape) return {{ReasonKind::varies_in_shape}};
    if (equality == Equality::inputs) return {{ReasonKind::data_order_given}};
    bool tensors = false;
    for (const Slot& slot : l.slots_of(e)) {
      if (slot.kind != SlotKind::in) continue;
      tensors = true;
      if (slot.flags & kUninitialised)
        return {{.kind = ReasonKind::uninitialised, .names = {l.text(slot.name)}}};
    }
    const std::string callee = view(l, a.event).operator_name;
    const Reasons states = states_before(a, b);
    if (draws_random(callee))
      return behind(states.empty() ? ReasonKind::draws_unseeded : ReasonKind::draws, states);
    if (e.flags & kCollective) return {{ReasonKind::collective_order}};
    if (slot.a && slot.b && index_[1].holds(value_key(l, *slot.a)))
      return {{ReasonKind::data_order_held}};
    if (slot.a && slot.b && slot.a->value.m == slot.b->value.m)
      return {{ReasonKind::rows_in_other_order}};
    return behind(tensors ? ReasonKind::no_fixed_order : ReasonKind::made_of_unrecorded, states);
  }

  // `part`: the slot of the rule, "" for all of the event.
  NoiseSite* add(const EventRef& a, const EventRef& b, const std::string& part, uint32_t slot,
                 PivotKind kind, Reasons why) {
    const int side = a.process >= 0 ? 0 : 1;
    const EventRef& ref = side == 0 ? a : b;
    const Event e = event(side, ref);
    std::string text = log(side, ref).text(e.boundary);
    if (!part.empty()) text += ":" + part;
    // An operator's forward and its backward nodes share the boundary.
    if (e.kind != EventKind::state)
      text += std::string(",kind=") + kind_name(e.kind) + ",phase=" + phase_name(e.phase);
    if (e.kind == EventKind::node) text += ",node=" + log(side, ref).text(e.node);
    auto [at, fresh] = found_.try_emplace(text);
    Found& found = at->second;
    if (!found.events.insert(Flow::id(ref)).second) return &found.site;
    ++found.site.times;
    if (!fresh && timeline_.position(side, ref) >= found.position) return &found.site;
    found.position = timeline_.position(side, ref);
    found.site.rule.text = text;
    // A rule is one line.
    for (Reason& reason : why)
      for (std::string& name : reason.names)
        std::replace_if(
            name.begin(), name.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
    found.site.pivot = {kind, a, b, slot, std::move(why)};
    found.site.model_value = e.kind == EventKind::loss || e.kind == EventKind::optimizer;
    return &found.site;
  }

  struct Found {
    NoiseSite site;
    Position position;
    std::unordered_set<uint64_t> events;
  };

  Timeline timeline_;
  ValueIndex index_[2];
  Blame blame_;
  std::map<std::string, Found> found_;  // by the rule's text
  std::unordered_set<uint64_t> done_;
  std::vector<std::pair<int, EventRef>> alone_;
  // By process: numbers that operators handed out, and which was the first to.
  std::map<int32_t, std::unordered_map<std::string, uint32_t>> results_[2];
  std::set<std::pair<int32_t, std::string>> idle_;  // process of a, generator
};

}  // namespace

std::vector<NoiseSite> find_noise(const Run& a, const Run& b, const Alignment& alignment) {
  return NoiseSearch(a, b, alignment).sites();
}

std::vector<NoiseSite> noisy_numbers(const Run& a, const Run& b, const Alignment& alignment) {
  return NoiseSearch(a, b, alignment).numbers();
}

}  // namespace opguard
