// What a candidate with the reference's values in place says of its operators.
//
//   a tensor on the way is the reference's now         it followed
//   it differs still, and all it was made of is known  at fault by itself
//   it differs still, and was made of such a one       hidden: that could not be put in
//
// Counterexample: parts of a sum. They were parts before and still are; only those that were read
// as if they were the sum are at fault.
#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "align/tolerance/flow_back.h"
#include "align/tolerance/judge_tolerance.h"
#include "confirm/confirm.h"
#include "confirm/isolation.h"

namespace opguard {
namespace {

class IsolationJudge {
 public:
  IsolationJudge(const Run& a, const Run& b, const Comparison& first, const IsolationPlan& plan,
                 const IsolatedRun& again)
      : a_(a), b_(b), first_(first), plan_(plan), again_(again), in_again_(again.run), in_b_(b) {
    for (uint32_t i = 0; i < first.tensors.size(); ++i)
      first_at_[slot_key(first.tensors[i].a.at)] = i;
  }

  Isolation judge(const Pivot& named) {
    found_.not_put = plan_.not_put;
    find_unrepeated();
    FlowBack flow(again_.run, again_.comparison);
    flow.learn_from(a_);
    for (size_t i = 0; i < plan_.puts.size(); ++i) know(flow, i);

    const FlowBack before(b_, first_);
    std::vector<uint32_t> still;
    std::set<uint32_t> followed;
    for (uint32_t i = 0; i < again_.comparison.tensors.size(); ++i) {
      const ComparedTensor& tensor = again_.comparison.tensors[i];
      const auto known = first_at_.find(slot_key(tensor.a.at));
      if (known == first_at_.end() || !plan_.on_way.contains(known->second)) continue;
      if (tensor.state == TensorState::beyond || tensor.state == TensorState::scaled ||
          (tensor.state == TensorState::partial && plan_.read_as_sums.contains(known->second)))
        still.push_back(i);
      else if (tensor.state != TensorState::unjudged)
        followed.insert(known->second);
    }
    std::set<uint32_t> visited;
    const std::vector<ToleranceOrigin> all = flow.all_origins(still, visited);
    std::vector<ToleranceOrigin> origins;
    for (const ToleranceOrigin& origin : all)
      if (!before.is_harmless(first_.tensors[number_of(origin)])) origins.push_back(origin);
    if (origins.empty()) origins = all;
    std::vector<Pivot> pivots = tolerance_pivots(a_, again_.run, again_.comparison, origins);
    for (size_t i = 0; i < origins.size(); ++i) add(origins[i], std::move(pivots[i]));
    found_.follow = followed.size();
    found_.hidden = still.size() - std::min(still.size(), all.size());
    found_.pivot_follows =
        named.tensor != kNone && followed.contains(named.tensor) && !at_fault(named);
    return std::move(found_);
  }

 private:
  // A value that was put in is known where it is read.
  void know(FlowBack& flow, size_t number) {
    const IsolatingPut& put = plan_.puts[number];
    if (again_.lines[number] == IsolatedRun::kUnasked) return;  // counted by who asked
    const auto process = static_cast<size_t>(put.b.event.process);
    const std::string fate = "transplant." + std::to_string(again_.lines[number]);
    const EventRef event = in_again_.find(b_, put.b.event);
    const auto& settings =
        again_.run.processes[event.process < 0 ? process : static_cast<size_t>(event.process)]
            .settings;
    const auto said = settings.find(fate);
    if (event.process < 0 || said == settings.end() || said->second != "done") {
      ++found_.not_put[static_cast<size_t>(NotPut::refused)];
      ++found_.refusals[said == settings.end() ? "not reached" : said->second];
      return;
    }
    ++found_.put;
    const ProcessLog& log = again_.run.processes[static_cast<size_t>(event.process)];
    const uint64_t slot = put.b.slot - b_.processes[process].events[put.b.event.event].first_slot;
    flow.know({event, log.events[event.event].first_slot + slot});
  }

  // Up to the first value put in, and the first that another rank may have changed.
  void find_unrepeated() {
    std::unordered_map<int32_t, uint32_t> until;
    for (const IsolatingPut& put : plan_.puts) {
      const auto known = until.try_emplace(put.b.event.process, put.b.event.event).first;
      known->second = std::min(known->second, put.b.event.event);
    }
    for (const auto& [process, end] : until) {
      const ProcessLog& log = b_.processes[static_cast<size_t>(process)];
      const uint64_t begin = log.events[end].begin;
      for (uint32_t i = 0; i < begin; ++i) {
        const Event event = log.events[i];
        if (communicates(event)) break;
        if (event.kind == EventKind::state) continue;
        if (in_again_.repeats(b_, {process, i}) == Repeat::same) continue;
        found_.unrepeated = {process, i};
        return;
      }
    }
  }

  // Its event or its tensor is one of those that were found.
  bool at_fault(const Pivot& pivot) const {
    return std::any_of(found_.faults.begin(), found_.faults.end(), [&](const auto& fault) {
      return fault.pivot.b == pivot.b || fault.pivot.tensor == pivot.tensor;
    });
  }

  // Of run b.
  const std::string& statement(const EventRef& ref) const {
    const ProcessLog& log = b_.processes[static_cast<size_t>(ref.process)];
    return log.text(log.events[ref.event].boundary);
  }

  // A statement of several expressions has as many boundaries.
  bool same_line(const EventRef& x, const EventRef& y) const {
    const auto location = [&](const EventRef& ref) -> const Location* {
      const ProcessLog& log = b_.processes[static_cast<size_t>(ref.process)];
      const auto known = log.locations.find(statement(ref));
      return known == log.locations.end() ? nullptr : &known->second;
    };
    const Location *one = location(x), *other = location(y);
    return one != nullptr && other != nullptr && one->file == other->file &&
           one->line == other->line;
  }

  // What ranks exchange is not put in, so what is made of it may follow.
  bool is_exchanged(const ToleranceOrigin& origin) const {
    const auto exchanges = [&](const EventRef& ref) {
      return communicates(again_.run.processes[static_cast<size_t>(ref.process)].events[ref.event]);
    };
    if (std::any_of(origin.region.begin(), origin.region.end(), exchanges)) return true;
    const auto& ranks = again_.comparison.tensors[origin.tensor].b;
    return std::any_of(ranks.begin(), ranks.end(),
                       [&](const SlotRef& at) { return exchanges(at.event); });
  }

  // A program may scale its losses, by ranks or micro-batches.
  bool is_of_the_loss(const ComparedTensor& tensor) const {
    if (tensor.state != TensorState::scaled) return false;
    return std::any_of(again_.comparison.tensors.begin(), again_.comparison.tensors.end(),
                       [&](const ComparedTensor& other) {
                         return other.a.activity.kind == EventKind::loss &&
                                other.state == TensorState::scaled &&
                                std::fabs(other.placement.factor - tensor.placement.factor) <
                                    1e-3 * std::fabs(tensor.placement.factor);
                       });
  }

  // Of its tensor, in the first comparison.
  uint32_t number_of(const ToleranceOrigin& origin) const {
    return first_at_.at(slot_key(again_.comparison.tensors[origin.tensor].a.at));
  }

  // A fault, in terms of the first comparison: events and slots of the re-run are found in run b by
  // name.
  void add(const ToleranceOrigin& origin, Pivot pivot) {
    const ComparedTensor& tensor = again_.comparison.tensors[origin.tensor];
    const auto here = [&](const EventRef& ref) {
      return ref.process < 0 ? EventRef{} : in_b_.find(again_.run, ref);
    };
    const EventRef in_again = pivot.b;
    pivot.b = here(in_again);
    if (pivot.slot != kNone && pivot.b.process >= 0)
      pivot.slot = static_cast<uint32_t>(
          pivot.slot -
          again_.run.processes[static_cast<size_t>(in_again.process)]
              .events[in_again.event]
              .first_slot +
          b_.processes[static_cast<size_t>(pivot.b.process)].events[pivot.b.event].first_slot);
    for (EventRef& ref : pivot.region[1]) ref = here(ref);
    std::erase_if(pivot.region[1], [](const EventRef& ref) { return ref.process < 0; });
    pivot.tensor = number_of(origin);
    if (pivot.b.process < 0) return;
    const bool sound =
        found_.unrepeated.process < 0 && !is_exchanged(origin) && !is_of_the_loss(tensor);
    // A statement is one fault, however often it runs, and in its backward pass too.
    for (IndependentFault& fault : found_.faults) {
      if (statement(fault.pivot.b) != statement(pivot.b) && !same_line(fault.pivot.b, pivot.b))
        continue;
      if (!fault.proven && origin.unknown == 0 && sound) fault.proven = true, fault.unknown = 0;
      return;
    }
    found_.faults.push_back({std::move(pivot), sound && origin.unknown == 0, origin.unknown,
                             tensor.placement.error, tensor.allowed});
  }

  const Run& a_;
  const Run& b_;
  const Comparison& first_;
  const IsolationPlan& plan_;
  const IsolatedRun& again_;
  const Again in_again_, in_b_;
  std::unordered_map<uint64_t, uint32_t> first_at_;  // of first_.tensors, by the reference's slot
  Isolation found_;
};

}  // namespace

Isolation judge_isolation(const Run& a, const Run& b, const Comparison& comparison,
                          const IsolationPlan& plan, const IsolatedRun& again, const Pivot& named) {
  return IsolationJudge(a, b, comparison, plan, again).judge(named);
}

}  // namespace opguard
