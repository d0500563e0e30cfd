// Each pair of processes is judged by itself, and the earliest difference of all of them wins.
//
//   loss of pass 3        position 410     considered
//   number printed        position 402     considered: earlier, so it takes the other's place
//   parameters, step 1    position 450     considered, and dropped
//
// Every comparison hands its first difference to consider(). So the order in which the comparisons
// stand here says nothing about the verdict, but for two at one position: the first stays.
//
// Where nothing was trained, the results of outermost calls stand for the model, and where no such
// call is seen, the last values made.
#include "align/values/model_values.h"
#include "align/values/lasting_values.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string_view>

#include "align/values/compare_steps.h"
#include "operators/operators.h"
#include "record/kept_values.h"

namespace opguard {
namespace {

class ModelValues {
 public:
  ModelValues(const ValueIndex& a, const ValueIndex& b, const Timeline& timeline,
              const HiddenRecords& hidden)
      : index_{&a, &b},
        timeline_(timeline),
        hidden_(hidden),
        elements_{RunElements(timeline.run(0), moments_[0]),
                  RunElements(timeline.run(1), moments_[1])} {
    for (int side : {0, 1}) {
      const Run& run = timeline.run(side);
      for (size_t p = 0; p < run.processes.size(); ++p)
        moments_[side].emplace_back(timeline, int32_t(p), side, hidden);
    }
  }

  ModelComparison first_difference() {
    std::optional<ModelDifference> first;  // of the pair of processes
    auto consider = [&](std::optional<ModelDifference> found) {
      if (!found || (first && !(found->position < first->position))) return;
      first = std::move(found);
    };
    for (const ProcessPair& both : timeline_.alignment().processes) {
      if (both.a < 0 || both.b < 0) continue;
      first.reset();
      const ModelMoments &a = moments_[0][both.a], &b = moments_[1][both.b];
      for (size_t k = 0; k < std::min(a.losses(), b.losses()); ++k) {
        const ModelSet loss_a = a.loss(k), loss_b = b.loss(k);
        result_.compared |= !loss_a.held.empty() || !loss_b.held.empty();
        consider(compare_sets(timeline_, loss_a, loss_b, ReasonKind::loss_differs));
      }
      // Only where both runs report it: a side that merely logs more has no pivot.
      for (const Pair& pair : both.pairs) {
        EventRef ra{both.a, pair.a}, rb{both.b, pair.b};
        if (!reports_number(timeline_.log(0, ra), timeline_.event(0, ra)) ||
            !reports_number(timeline_.log(1, rb), timeline_.event(1, rb)))
          continue;
        // Equal ones need no look at their values, unless a rule may name them.
        if (pair.equality == Equality::equal && hidden_.empty()) {
          result_.compared = true;
          continue;
        }
        const ModelSet number_a = a.inputs(ra.event), number_b = b.inputs(rb.event);
        if (number_a.held.empty() && number_b.held.empty()) continue;
        result_.compared = true;
        if (pair.equality != Equality::equal)
          consider(compare_sets(timeline_, number_a, number_b, ReasonKind::number_differs));
      }
      for (ModelDifference& difference : numbers_instead(both)) consider(std::move(difference));
      StepComparison steps = compare_steps(timeline_, both, {*index_[0], moments_[0], elements_[0]},
                                           {*index_[1], moments_[1], elements_[1]});
      for (int side : {0, 1}) result_.same_elements[side].merge(steps.same_elements[side]);
      add(steps);
      consider(std::move(steps.first));
      LastingPair lasting(timeline_.run(0).processes[both.a], timeline_.run(1).processes[both.b]);
      auto consider_kept = [&](KeptComparison kept) {
        add(kept);
        consider(std::move(kept.first));
      };
      consider_kept(compare_buffers(timeline_, both, hidden_));
      consider_kept(compare_lasting(timeline_, both, hidden_, lasting));
      consider_kept(compare_saved(timeline_, both, hidden_));
      consider(lasting_of_one_run(timeline_, both, hidden_, lasting, *index_[0], *index_[1]));
      if (a.losses() != b.losses())
        result_.notes.push_back(
            {{.kind = ReasonKind::backward_passes, .numbers = {a.losses(), b.losses()}}});
      else if (a.steps() != b.steps())
        result_.notes.push_back(
            {{.kind = ReasonKind::optimizer_steps, .numbers = {a.steps(), b.steps()}}});
      if (a.losses() != b.losses() || a.steps() != b.steps()) consider(extra(a, b));
      if (a.losses() + b.losses() + a.steps() + b.steps() == 0) {
        KeptComparison results = compare_results(timeline_, both, hidden_);
        result_.compared |= results.compared;
        consider(std::move(results.first));
        // Nothing leaves the program where we could see it.
        if (!result_.compared) consider(final_values(both));
      }
      if (!first) continue;
      if (!result_.first || first->position < result_.first->position) result_.first = first;
      result_.ranks.push_back(std::move(*first));
    }
    return std::move(result_);
  }

  // Ranks have the same notes, as a rule. Each is told once.
  static void add_once(std::vector<Reasons>& to, const Reasons& reason) {
    if (std::find(to.begin(), to.end(), reason) == to.end()) to.push_back(reason);
  }

  void add(const KeptComparison& found) {
    result_.compared |= found.compared;
    for (const Reasons& note : found.notes) add_once(result_.notes, note);
    for (const Reasons& reason : found.uncompared) add_once(result_.uncompared, reason);
  }

  // Numbers that each run alone hands over, between the same operators of both. A run that merely
  // logs more has some where the other has none.
  std::vector<ModelDifference> numbers_instead(const ProcessPair& both) const {
    const int32_t process[2] = {both.a, both.b};
    std::map<uint32_t, std::vector<uint32_t>> gaps[2];  // by the pair before, as an event of a
    for (int side : {0, 1}) {
      const ProcessLog& log = timeline_.run(side).processes[process[side]];
      uint32_t before = kNone;
      for (uint32_t i = 0; i < log.events.size(); ++i) {
        const EventRef ref{process[side], i};
        const EventRef other = timeline_.partner(side, ref);
        const Event event = log.events[i];
        if (event.kind != EventKind::op) continue;
        const bool number = reports_number(log, event);
        if (other.process >= 0 && !number) before = side == 0 ? i : other.event;
        if (other.process < 0 && number && !timeline_.besides(side, ref))
          gaps[side][before].push_back(i);
      }
    }
    std::vector<ModelDifference> found;
    for (const auto& [before, events] : gaps[0]) {
      const auto there = gaps[1].find(before);
      if (there == gaps[1].end()) continue;
      const std::vector<uint32_t>* all[2] = {&events, &there->second};
      ModelSet sets[2];
      for (int side : {0, 1})
        for (uint32_t i : *all[side]) {
          ModelSet number = moments_[side][process[side]].inputs(i);
          sets[side].event = number.event;
          sets[side].held.insert(sets[side].held.end(), number.held.begin(), number.held.end());
        }
      auto difference = compare_sets(timeline_, sets[0], sets[1], {ReasonKind::number_differs});
      if (!difference || difference->slots[0].empty() || difference->slots[1].empty()) continue;
      for (int side : {0, 1}) difference->instead[side] = difference->slots[side].front().event;
      difference->position = timeline_.position(0, difference->instead[0]);
      found.push_back(std::move(*difference));
    }
    return found;
  }

  // One run goes on where the other has ended: its first further model value.
  std::optional<ModelDifference> extra(const ModelMoments& a, const ModelMoments& b) const {
    const ModelMoments* moments[2] = {&a, &b};
    for (int side : {0, 1}) {
      const ModelMoments &mine = *moments[side], &theirs = *moments[1 - side];
      const bool losses = mine.losses() > theirs.losses();
      if (!losses && mine.steps() <= theirs.steps()) continue;
      const ModelSet set = losses ? mine.loss(theirs.losses()) : mine.step(theirs.steps()).after;
      ModelDifference difference{
          {}, timeline_.position(side, set.event), {ReasonKind::more_values}};
      difference.longer = side;
      for (const HeldValue& held : set.held) difference.slots[side].push_back(held.at);
      return difference;
    }
    return {};
  }

  // Without training: the last values made and not read again, novel on either side.
  std::optional<ModelDifference> final_values(const ProcessPair& both) {
    ModelDifference difference{{}, {}, {ReasonKind::final_values_differ}};
    int32_t process[2] = {both.a, both.b};
    for (int side : {0, 1}) {
      EventRef ref{process[side], 0};
      const ProcessLog& log = timeline_.run(side).processes[process[side]];
      if (log.events.empty()) continue;
      result_.compared = true;
      Flow flow(*index_[side], *index_[1 - side]);
      std::set<std::pair<uint64_t, uint64_t>> read;
      for (uint32_t e = log.events.size(); e-- > 0 && difference.slots[side].empty();) {
        ref.event = e;
        const Event& event = log.events[e];
        if (event.kind == EventKind::state) continue;
        const EventSlots slots = log.slots_of(event);
        for (const Slot& slot : slots) {
          const uint64_t at = slots.index_of(slot);
          ValueKey key = value_key(log, slot);
          bool result = slot.kind != SlotKind::in || event.results != kNone;
          if (result && flow.novel(ref, slot) && log.metas[slot.meta].dtype != "bool" &&
              !read.contains({key.lo, key.hi}) && !hidden_.rule_of(side, ref, at)) {
            difference.slots[side].push_back({ref, at});
            difference.position = std::max(difference.position, timeline_.position(side, ref));
          }
          if (slot.kind == SlotKind::in) read.insert({key.lo, key.hi});
        }
      }
    }
    if (difference.slots[0].empty() && difference.slots[1].empty()) return {};
    return difference;
  }

 private:
  const ValueIndex* index_[2];
  const Timeline& timeline_;
  const HiddenRecords& hidden_;
  std::vector<ModelMoments> moments_[2];  // by process
  RunElements elements_[2];
  ModelComparison result_;
};

}  // namespace

std::vector<Pair> unequal_pairs(const Run& a, const Alignment& alignment) {
  std::vector<Pair> pairs;
  for (const Pair* pair : pairs_in_order(a, alignment))
    if (pair->equality != Equality::equal && !passed_over(a, alignment, *pair))
      pairs.push_back(*pair);
  return pairs;
}

// By the recorded result: "out=0.5", "out=[1, 2]", "out='3.1'", "out=inf" are numbers, "out=True"
// and "out=None" are not. It must leave no tensor, unless it hands out an array, and read no
// boolean.
bool reports_number(const ProcessLog& log, const Event& event) {
  if (event.kind != EventKind::op || event.slot_count == 0) return false;
  const std::string& results = log.text(event.results);
  const size_t value = results.find('=') + 1;
  // Code without operators works on the array. The boundary is "model.numpy:k3x2".
  const std::string_view boundary = log.text(event.boundary);
  const bool array = hands_array(boundary.substr(0, boundary.rfind(':')));
  const bool text = value < results.size() && std::strchr("-[('0123456789in", results[value]) &&
                    results.find_first_of("0123456789in", value) != std::string::npos;
  if (!array && !text) return false;
  for (const Slot& slot : log.slots_of(event)) {
    if (slot.kind == SlotKind::written || (slot.kind != SlotKind::in && !array)) return false;
    if (log.metas[slot.meta].dtype == "bool") return false;
  }
  return true;
}

ModelComparison compare_model_values(const ValueIndex& a, const ValueIndex& b,
                                     const Timeline& timeline, const HiddenRecords& hidden) {
  return ModelValues(a, b, timeline, hidden).first_difference();
}

}  // namespace opguard
