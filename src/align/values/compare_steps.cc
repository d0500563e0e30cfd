// A step's parameters, gradients and state are each compared by the first of these that is
// possible:
//
//   as many tensors of each type and shape     value by value (compare_sets)
//   the same elements in other pieces          equal: their sums say so
//   some under one name, in one shape          those, and what is left over is told
//   nothing of these                           not at all; why not is told once, with how often
//
// Where parameters are the same elements in other pieces, their values count as known to both runs.
#include "align/values/compare_steps.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace opguard {
namespace {

using HeldKey = std::pair<ValueKey, Fingerprint>;

// A value's name and, where it is to be told by that too, its digest in its own shape.
HeldKey key(const HeldValue& held, bool shaped) {
  return {held.key, shaped ? held.slot.value : Fingerprint{}};
}

std::multiset<HeldKey> keys(const ModelSet& set, bool shaped) {
  std::multiset<HeldKey> all;
  for (const HeldValue& held : set.held) all.insert(key(held, shaped));
  return all;
}

// Those of one side that the other does not hold under the same name.
std::vector<HeldValue> unlike_by_name(const Timeline& timeline, int side, const ModelSet& mine,
                                      const ModelSet& theirs, bool shaped) {
  auto named = [&](int of, const ModelSet& set, const HeldValue& held) {
    return std::pair(timeline.log(of, set.event).text(held.slot.name), key(held, shaped));
  };
  std::multiset<std::pair<std::string, HeldKey>> others;
  for (const HeldValue& held : theirs.held) others.insert(named(1 - side, theirs, held));
  std::vector<HeldValue> rest;
  for (const HeldValue& held : mine.held) {
    if (auto at = others.find(named(side, mine, held)); at != others.end())
      others.erase(at);
    else
      rest.push_back(held);
  }
  return rest;
}

const Meta& meta_of(const ProcessLog& log, const HeldValue& held) {
  return log.metas[held.slot.meta];
}

std::multiset<Meta> metas(const ProcessLog& log, const ModelSet& set) {
  std::multiset<Meta> all;
  for (const HeldValue& held : set.held) all.insert(meta_of(log, held));
  return all;
}

bool all_zero(const std::vector<HeldValue>& all) {
  return std::all_of(all.begin(), all.end(),
                     [](const HeldValue& held) { return held.slot.value == Fingerprint{}; });
}

bool all_ranks(const Run& run) {
  std::set<int32_t> ranks;
  for (const ProcessLog& log : run.processes) ranks.insert(log.rank);
  return std::all_of(run.processes.begin(), run.processes.end(),
                     [&](const ProcessLog& log) { return int64_t(ranks.size()) >= log.world; });
}

// How often one list could not be compared, and why not at first.
struct Missed {
  size_t steps = 0;
  Reason why;
};

class Steps {
 public:
  Steps(const Timeline& timeline, const ProcessPair& both, const SteppingRun& a,
        const SteppingRun& b)
      : timeline_(timeline), runs_{&a, &b}, process_{both.a, both.b} {}

  StepComparison compare() {
    const size_t steps = std::min(moments(0).steps(), moments(1).steps());
    size_t k = 0;
    for (; k < steps && !found_.first; ++k) compare_step(k);
    if (in_pieces_ > 0)
      found_.notes.push_back({{.kind = ReasonKind::other_pieces, .numbers = {in_pieces_, k}}});
    tell({ReasonKind::parameters_unlike}, parameters_, k);
    tell({ReasonKind::gradients_unlike}, gradients_, k);
    for (const auto& [key, missed] : states_)
      tell({.kind = ReasonKind::state_unlike, .names = {key}}, missed, k);
    if (!alone_[0].empty() && !alone_[1].empty())
      found_.uncompared.push_back(
          {{.kind = ReasonKind::state_names, .names = {*alone_[0].begin(), *alone_[1].begin()}}});
    else
      for (int side : {0, 1})
        for (const std::string& key : alone_[side])
          found_.notes.push_back({{.kind = ReasonKind::state_alone, .side = side, .names = {key}}});
    return std::move(found_);
  }

 private:
  const ModelMoments& moments(int side) const { return runs_[side]->moments[process_[side]]; }
  const ProcessLog& log(int side) const { return timeline_.run(side).processes[process_[side]]; }

  void tell(Reason what, const Missed& missed, size_t steps) {
    what.numbers = {missed.steps, steps};
    if (missed.steps > 0) found_.uncompared.push_back({what, missed.why});
  }

  void consider(std::optional<ModelDifference> difference) {
    if (difference && !found_.first) found_.first = std::move(difference);
  }

  void compare_step(size_t k) {
    const StepSets a = moments(0).step(k), b = moments(1).step(k);
    const bool same_pieces = alike(timeline_, a.after, b.after);
    std::optional<StepElements> elements[2];
    auto of = [&](int side) -> const StepElements& {
      if (!elements[side]) elements[side] = runs_[side]->elements.of(process_[side], k);
      return *elements[side];
    };
    if (same_pieces) {
      found_.compared |= !a.after.held.empty();
      consider(compare_sets(timeline_, a.after, b.after, ReasonKind::parameters_differ));
    } else if (same_elements(of(0).after, of(1).after) || !compare_shared(a, b)) {
      compare_pieces(a, b, of(0), of(1));
    }
    if (alike(timeline_, a.gradients, b.gradients)) {
      found_.compared |= !a.gradients.held.empty();
      consider(compare_sets(timeline_, a.gradients, b.gradients, ReasonKind::gradients_differ));
    } else {
      compare_list(a.gradients, b.gradients, of(0).gradients, of(1).gradients, same_pieces,
                   ReasonKind::gradients_differ, gradients_);
    }
    if (alike(timeline_, a.states, b.states)) {
      found_.compared |= !a.states.held.empty();
      consider(compare_sets(timeline_, a.states, b.states, ReasonKind::optimizer_state_differs));
    } else {
      compare_states(a.states, b.states, of(0), of(1), same_pieces);
    }
  }

  // One run has all of the other's parameters, under their names and in their shapes, and more.
  // What the other run holds as a tensor that no optimizer steps is the same parameter, frozen
  // there.
  //   a  AdamW  embed.weight, head.weight
  //   b  AdamW  embed.weight, head.weight, head.bias     a holds head.bias nowhere: it differs
  // False: they are something else.
  bool compare_shared(const StepSets& a, const StepSets& b) {
    ModelSet shared[2] = {a.after, b.after};
    const std::vector<HeldValue> rest[2] = {share(0, shared[0], b.after),
                                            share(1, shared[1], a.after)};
    const StepSets* steps[2] = {&a, &b};
    for (int side : {0, 1}) {
      if (shared[side].held.empty() || !rest[side].empty()) continue;
      if (!all_ranks(timeline_.run(side))) return false;  // another rank may step the rest
      found_.compared = true;
      consider(compare_sets(timeline_, shared[0], shared[1], ReasonKind::parameters_differ));
      for (const HeldValue& held : rest[1 - side])
        if (held.slot.value != Fingerprint{} && !runs_[side]->index.holds(held.key))
          consider(alone(1 - side, *steps[1 - side], held));
      return true;
    }
    return false;
  }

  // held: as the step left it. Who made it is asked of what the step found.
  ModelDifference alone(int side, const StepSets& step, const HeldValue& held) const {
    ModelDifference difference{{}, timeline_.position(side, step.after.event), {}};
    const std::string& name = log(side).text(held.slot.name);
    const auto before =
        std::find_if(step.before.held.begin(), step.before.held.end(),
                     [&](const HeldValue& one) { return log(side).text(one.slot.name) == name; });
    difference.why = {.kind = ReasonKind::parameter_alone,
                      .side = side,
                      .names = {name.substr(name.find(':') + 1)}};
    difference.slots[side].push_back(before == step.before.held.end() ? held.at : before->at);
    return difference;
  }

  // Parameters in other pieces.
  void compare_pieces(const StepSets& a, const StepSets& b, const StepElements& of_a,
                      const StepElements& of_b) {
    if (same_elements(of_a.after, of_b.after)) {
      ++in_pieces_;
      know(a.after, b.after);
    } else if (!held_by_other(0, a.after) && !held_by_other(1, b.after)) {
      if (other_elements(of_a, of_b)) return consider(differing(a.after, b.after));
      miss(parameters_, why_not(of_a.after, of_b.after));
      return;
    }
    if (same_elements(of_a.before, of_b.before)) know(a.before, b.before);
    found_.compared = true;
  }

  // Every one of them is a value the other run holds: its forward reads it by itself.
  bool held_by_other(int side, const ModelSet& set) const {
    return !set.held.empty() &&
           std::all_of(set.held.begin(), set.held.end(), [&](const HeldValue& held) {
             return held.slot.value == Fingerprint{} || runs_[1 - side]->index.holds(held.key);
           });
  }

  // Which of them, where the other run has no tensor like it? Those that it holds nowhere.
  ModelDifference differing(const ModelSet& a, const ModelSet& b) const {
    ModelDifference difference{{}, timeline_.position(0, a.event), {ReasonKind::parameters_differ}};
    const ModelSet* sets[2] = {&a, &b};
    for (int side : {0, 1})
      for (const HeldValue& held : sets[side]->held)
        if (held.slot.value != Fingerprint{} && !runs_[1 - side]->index.holds(held.key))
          difference.slots[side].push_back(held.at);
    return difference;
  }

  // Gradients, or a kind of state. What one run lacks and the other has as zeros is the same to an
  // optimizer. `same_pieces`: the parameters are alike, so one of a name is the other's.
  void compare_list(const ModelSet& a, const ModelSet& b, const ElementSums& of_a,
                    const ElementSums& of_b, bool same_pieces, ReasonKind why, Missed& missed) {
    if (same_elements(of_a, of_b)) {
      found_.compared |= !a.held.empty();
      return know(a, b);
    }
    if (same_pieces) {
      ModelSet shared_a = a, shared_b = b;
      const bool rest_a = !all_zero(share(0, shared_a, b)),
                 rest_b = !all_zero(share(1, shared_b, a));
      found_.compared |= !shared_a.held.empty();
      if (auto difference = compare_sets(timeline_, shared_a, shared_b, why))
        return consider(std::move(difference));
      if (!rest_a && !rest_b) return;
    }
    miss(missed, why_not(of_a, of_b));
  }

  void compare_states(const ModelSet& a, const ModelSet& b, const StepElements& of_a,
                      const StepElements& of_b, bool same_pieces) {
    for (const auto& [key, elements] : of_a.states)
      if (!of_b.states.contains(key)) alone_[0].insert(key);
    for (const auto& [key, elements] : of_b.states) {
      auto other = of_a.states.find(key);
      if (other == of_a.states.end())
        alone_[1].insert(key);
      else
        compare_list(of_key(0, a, key), of_key(1, b, key), other->second, elements, same_pieces,
                     ReasonKind::optimizer_state_differs, states_[key]);
    }
  }

  ModelSet of_key(int side, const ModelSet& states, const std::string& key) const {
    ModelSet some{states.event, {}, states.whole};
    for (const HeldValue& held : states.held)
      if (state_key(log(side).text(held.slot.name)) == key) some.held.push_back(held);
    return some;
  }

  // Leaves what both have in one place: of one name, type and shape. Numbers are names only within
  // an optimizer: one inside another counts its own. Returns what is left out.
  std::vector<HeldValue> share(int side, ModelSet& mine, const ModelSet& theirs) const {
    auto place = [&](int of, const HeldValue& held) {
      return std::pair(log(of).text(held.slot.name), meta_of(log(of), held));
    };
    auto named = [&](int of, const ModelSet& set, const HeldValue& held) {
      return held.at.event == set.event ||
             log(of).text(held.slot.name).find(':') != std::string::npos;
    };
    std::multiset<std::pair<std::string, Meta>> others;
    for (const HeldValue& held : theirs.held)
      if (named(1 - side, theirs, held)) others.insert(place(1 - side, held));
    std::vector<HeldValue> shared, rest;
    for (HeldValue& held : mine.held) {
      const auto at = others.find(place(side, held));
      const bool both = named(side, mine, held) && at != others.end();
      if (both) others.erase(at);
      (both ? shared : rest).push_back(std::move(held));
    }
    mine.held = std::move(shared);
    return rest;
  }

  void know(const ModelSet& a, const ModelSet& b) {
    const ModelSet* sets[2] = {&a, &b};
    for (int side : {0, 1})
      for (const HeldValue& held : sets[side]->held) found_.same_elements[side].insert(held.key);
  }

  static void miss(Missed& missed, Reason why) {
    if (missed.steps++ == 0) missed.why = std::move(why);
  }

  const Timeline& timeline_;
  const SteppingRun* const runs_[2];
  const int32_t process_[2];
  size_t in_pieces_ = 0;  // steps after which the parameters were the same elements
  Missed parameters_, gradients_;
  std::map<std::string, Missed> states_;  // by kind
  std::set<std::string> alone_[2];        // kinds of state that one run alone has
  StepComparison found_;
};

}  // namespace

bool alike(const Timeline& timeline, const ModelSet& a, const ModelSet& b) {
  return metas(timeline.log(0, a.event), a) == metas(timeline.log(1, b.event), b);
}

// a has w1 = 9f31 and w2 = 5d02, b has w1 = 9f31 and w2 = 0c4e: w2 of both. As sets, for names may
// differ; of one value's several holders those are taken away first that agree by name too.
std::optional<ModelDifference> compare_sets(const Timeline& timeline, const ModelSet& a,
                                            const ModelSet& b, ReasonKind why) {
  const bool shaped = alike(timeline, a, b);
  const auto keys_a = keys(a, shaped), keys_b = keys(b, shaped);
  if (keys_a == keys_b) return {};
  ModelDifference difference{{}, timeline.position(0, a.event), {why}};
  difference.same_names = keys(a, false) == keys(b, false);
  // Of several of one value, those of one name in both runs are not the ones that differ.
  const std::vector<HeldValue> rest[2] = {unlike_by_name(timeline, 0, a, b, shaped),
                                          unlike_by_name(timeline, 1, b, a, shaped)};
  for (int side : {0, 1}) {
    std::multiset<HeldKey> others;
    for (const HeldValue& held : rest[1 - side]) others.insert(key(held, shaped));
    for (const HeldValue& held : rest[side]) {
      if (auto at = others.find(key(held, shaped)); at != others.end())
        others.erase(at);
      else
        difference.slots[side].push_back(held.at);
    }
  }
  return difference;
}

StepComparison compare_steps(const Timeline& timeline, const ProcessPair& both,
                             const SteppingRun& a, const SteppingRun& b) {
  return Steps(timeline, both, a, b).compare();
}

}  // namespace opguard
