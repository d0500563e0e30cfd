// The order of the work. Each step renames the candidate's tensors a little more as the reference
// has them, until a look-up by name finds the partner.
//
//   names as recorded     rank 1   layers.0.wq, execution 1
//   layers                         layers.2.wq, execution 1      (a stage with layers 2 and 3)
//   losses, modules                as the reference's calls of backward(), its module order
//   micro-batches                  layers.2.wq, execution 3      (rank 1's second is the fourth)
//
// A port has no such names. Its tensors have partners by value (port_values.h), and are compared
// whole on one process.
//
// The last pass goes through the tensors in the reference's order. So the first gradient of a
// micro-batch is met before those that are measured in its unit.
#include "align/tolerance/comparison.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "align/tolerance/declared_tensors.h"
#include "align/tolerance/loss_names.h"
#include "align/tolerance/module_order.h"
#include "align/tolerance/noise_level.h"
#include "align/tolerance/parameter_parts.h"
#include "align/tolerance/reference_tensors.h"
#include "align/tolerance/summed_losses.h"

namespace opguard {
namespace {

// Jitter alone moves a tensor by more than this part of its norm: a choice or a division went the
// other way.
constexpr double kTooNoisy = 0.25;
// Units of the narrower type that rounding may become in a forward pass.
constexpr double kMostUnits = 16;

// Of a gradient, where the reference was jittered as coarsely as the candidate rounds, operator by
// operator. Many roundings lie behind it, and the two differ by their draws alone. So much of the
// factor does.
constexpr double kAsCoarse = 0.5;

// The candidate's tensors, with activities and slots named as the reference has them.
ProcessTensors renamed(ProcessTensors mine, int32_t process, const Layers& layers, Texts& texts) {
  std::unordered_map<uint32_t, uint32_t> known;
  const auto rename = [&](uint32_t text) {
    const auto [it, fresh] = known.try_emplace(text, text);
    if (fresh) it->second = texts.number(layers.global_name(process, texts.text(text)));
    return it->second;
  };
  for (SketchedTensor& tensor : mine.tensors) {
    tensor.activity.module = rename(tensor.activity.module);
    tensor.slot = rename(tensor.slot);
  }
  decltype(mine.executions) executions;
  for (const auto& [own, times] : mine.executions) {
    Activity activity = own;
    activity.module = rename(activity.module);
    executions[activity] += times;
  }
  mine.executions = std::move(executions);
  return mine;
}

// Modules above the layers of a pipeline are run by every stage, on values of their own. Those of
// the last layer's ranks are the model's.
class AboveLayers {
 public:
  explicit AboveLayers(const std::vector<LayerPlace>& places) {
    std::map<std::string, std::map<int32_t, std::set<uint32_t>>> held;
    for (const LayerPlace& place : places)
      if (place.depth == 0) held[place.prefix][place.process].insert(place.global);
    for (const auto& [prefix, by_process] : held) {
      bool split = false;
      uint32_t last = 0;
      for (const auto& [process, layers] : by_process) {
        split |= layers != by_process.begin()->second;
        last = std::max(last, *layers.rbegin());
      }
      if (!split) continue;
      prefixes_.push_back(prefix);
      for (const auto& [process, layers] : by_process)
        if (layers.contains(last)) of_last_.insert(process);
    }
  }

  // Of the prefix "model.layers" that is "model", "model.layers" and the root; "model.head" is not.
  bool is_above(std::string_view module) const {
    for (const std::string& prefix : prefixes_)
      if (module.empty() || module == "<root>" || prefix == module ||
          (prefix.starts_with(module) && prefix[module.size()] == '.'))
        return true;
    return false;
  }
  bool has_last(int32_t process) const { return of_last_.contains(process); }

 private:
  std::vector<std::string> prefixes_;
  std::set<int32_t> of_last_;
};

// The order of these questions is the order of precedence. A candidate that is not finite where the
// reference is, is beyond, however noisy the tensor.
TensorState state_of(const ComparedTensor& tensor, bool zero) {
  const TensorPlacement& found = tensor.placement;
  if (tensor.finite_a && !tensor.finite_b) return TensorState::beyond;
  if (zero || tensor.noise > kTooNoisy) return TensorState::unjudged;
  if (found.kind == PlacementKind::unknown || !found.stray.empty() || found.omitted > 0)
    return TensorState::beyond;
  if (found.factor != 1) return TensorState::scaled;
  if (found.kind == PlacementKind::partial || found.kind == PlacementKind::partial_mean)
    return TensorState::partial;
  return TensorState::equal;
}

// How many tensors an operator leaves. Of x.chunk(1) and x.chunk(2) the first is not the same one.
size_t results_of(const Run& run, const SlotRef& at) {
  const ProcessLog& log = run.processes[static_cast<size_t>(at.event.process)];
  const Event event = log.events[at.event.event];
  if (event.kind != EventKind::op) return 1;
  const EventSlots slots = log.slots_of(event);
  return static_cast<size_t>(std::count_if(
      slots.begin(), slots.end(), [](const Slot& slot) { return slot.kind == SlotKind::out; }));
}

// Most of what both have is in a narrower type in the candidate: the ratio of the types' units.
double coarser_of(const std::vector<ComparedTensor>& tensors, SketchReader& a, SketchReader& b) {
  uint64_t floating = 0;
  std::map<double, uint64_t> narrower;
  for (const ComparedTensor& tensor : tensors) {
    const double mine = unit_roundoff(a.meta(tensor.a.at).dtype),
                 other = unit_roundoff(b.meta(tensor.b.front()).dtype);
    if (mine == 0 || other == 0) continue;
    ++floating;
    if (other > mine) ++narrower[other / mine];
  }
  double coarser = 1;
  uint64_t most = floating / 4;  // of a model under autocast a good part stays float32
  for (const auto& [ratio, times] : narrower)
    if (times > most) {
      most = times;
      coarser = ratio;
    }
  return coarser;
}

// In the step before every update, and on the way to a loss.
bool is_first_forward(const Run& candidate, const ComparedTensor& tensor,
                      const Comparison& comparison) {
  const auto& activity = tensor.a.activity;
  const EventRef& made = tensor.b.front().event;
  const ProcessLog& log = candidate.processes[static_cast<size_t>(made.process)];
  return activity.kind == EventKind::op && activity.phase == Phase::forward &&
         (log.events[made.event].flags & kInGraph) != 0 &&
         activity.step == comparison.reference.tensors.front().activity.step &&
         comparison.texts.text(tensor.a.node).empty();
}

}  // namespace

int32_t only_process(const Run& run) {
  int32_t found = -1;
  for (size_t i = 0; i < run.processes.size(); ++i) {
    if (run.processes[i].sketches.empty()) continue;
    if (found >= 0) return -2;
    found = static_cast<int32_t>(i);
  }
  return found;
}

Comparison compare_tensors(const Run& reference, const Run& candidate,
                           const std::vector<Run>& noise, const ToleranceOptions& options) {
  Comparison result;
  const StepsBy steps = has_optimizer(reference) == has_optimizer(candidate) ? StepsBy::optimizer
                                                                             : StepsBy::parameters;
  result.reference = reference_tensors(reference, result.texts, steps);
  const TensorIndex index(result.reference);
  SketchReader a(reference), b(candidate);
  const NoiseLevels levels(reference, result.reference, noise, result.texts, steps);
  const int32_t alone = only_process(candidate);
  if (alone >= 0 && only_process(reference) >= 0)
    if (const ProcessTensors mine = tensors_of(candidate, alone, result.texts, steps);
        is_port(result.reference, mine, result.texts))
      result.port = pair_port({reference, result.reference}, {candidate, mine}, result.texts,
                              levels, options.factor);
  if (result.port.told) {
    const std::vector<SlotRef> parts = parameter_parts(candidate, alone);
    result.port.known.insert(result.port.known.end(), parts.begin(), parts.end());
  }
  const Layers layers = result.port.told ? Layers(Run(), Run()) : Layers(reference, candidate);
  result.layers = layers.places();
  result.layers_of_none = layers.held_by_none();
  std::vector<ProcessTensors> ranks;
  for (size_t process = 0; process < candidate.processes.size(); ++process)
    ranks.push_back(
        renamed(tensors_of(candidate, static_cast<int32_t>(process), result.texts, steps),
                static_cast<int32_t>(process), layers, result.texts));
  name_losses(ranks, result.reference);
  for (ProcessTensors& rank : ranks) order_modules(rank, result.reference, result.texts);
  const MicroBatches batches({result.reference, index, a}, ranks, candidate, b);
  result.micro_batches = batches.places();

  std::unordered_map<const SketchedTensor*, ComparedTensor> held;
  for (size_t process = 0; process < ranks.size(); ++process) {
    const auto number = static_cast<int32_t>(process);
    for (const SketchedTensor& tensor : ranks[process].tensors) {
      SketchedTensor name = tensor;
      const SketchedTensor* whole = nullptr;
      if (result.port.told) {
        const auto partner = result.port.partners.find(tensor.at.slot);
        if (number == alone && partner != result.port.partners.end())
          whole = &result.reference.tensors[partner->second];
      } else {
        name.execution = batches.execution(number, tensor.activity, tensor.execution);
        if (name.execution != kNone) whole = index.find(name);
        if (whole != nullptr &&
            results_of(reference, whole->at) != results_of(candidate, tensor.at))
          whole = nullptr;
      }
      if (whole == nullptr) continue;
      ComparedTensor& compared = held[whole];
      const int32_t rank = candidate.processes[process].rank;
      if (!compared.ranks.empty() && compared.ranks.back() == rank) continue;
      compared.b.push_back(tensor.at);
      compared.ranks.push_back(rank);
    }
  }
  const AboveLayers above(result.layers);
  const MicroBatchCounts counts(result.reference);
  for (const SketchedTensor& tensor : result.reference.tensors) {
    const auto found = held.find(&tensor);
    if (found == held.end()) {
      result.missing += index.find(tensor) == &tensor;
      continue;
    }
    ComparedTensor& compared = found->second;
    compared.a = tensor;
    if (const uint32_t each = counts.runs_each(tensor.activity))
      compared.micro_batch = tensor.execution / each;
    if (above.is_above(result.texts.text(tensor.activity.module)) &&
        tensor.activity.kind != EventKind::state) {
      ComparedTensor last = compared;
      last.b.clear(), last.ranks.clear();
      for (size_t i = 0; i < compared.b.size(); ++i)
        if (above.has_last(compared.b[i].event.process)) {
          last.b.push_back(compared.b[i]);
          last.ranks.push_back(compared.ranks[i]);
        }
      if (!last.b.empty()) compared = std::move(last);
    }
    result.tensors.push_back(std::move(compared));
  }
  result.coarser = coarser_of(result.tensors, a, b);

  std::map<std::pair<uint32_t, uint32_t>, double> units;  // by step and micro-batch
  for (ComparedTensor& compared : result.tensors) {
    std::vector<std::vector<int64_t>> locals;
    for (const SlotRef& held_at : compared.b)
      if (const auto& shape = b.meta(held_at).shape;
          std::find(locals.begin(), locals.end(), shape) == locals.end())
        locals.push_back(shape);
    const WholeValue whole{a.meta(compared.a.at).shape, a.sets(compared.a.at, locals)};
    const bool gradient = !result.texts.text(compared.a.node).empty();
    const bool of_gradient = gradient || result.texts.text(compared.a.slot).starts_with("grad:");
    std::vector<RankValue> values;
    for (size_t i = 0; i < compared.b.size(); ++i)
      if (const Sketch* own = b.own(compared.b[i])) {
        values.push_back({static_cast<uint32_t>(compared.ranks[i]),
                          result.port.told ? whole.shape : b.meta(compared.b[i]).shape, own->sums});
        bool finite = own->finite();
        // A pad without effect has a gradient of zeros.
        if (!of_gradient)
          for (const Sketch& unpadded : b.unpadded(compared.b[i])) {
            values.back().unpadded.push_back(unpadded.sums);
            finite |= unpadded.finite();
          }
        compared.finite_b &= finite;
      }
    if (whole.sets.empty() || values.empty()) {
      compared.state = TensorState::unjudged;
      continue;
    }
    compared.finite_a = whole.sets[0].sketches[0].finite();
    const double unit_of_a = unit_roundoff(a.meta(compared.a.at).dtype);
    const double least = std::max(unit_of_a, unit_roundoff(b.meta(compared.b.front()).dtype));
    compared.jittered = compared.noise = std::max(levels.of(compared.a), least);
    if (result.coarser > 1 && is_first_forward(candidate, compared, result))
      compared.noise = std::min(compared.noise, kMostUnits * result.coarser * unit_of_a);
    const bool as_coarse = result.coarser > 1 && compared.noise == compared.jittered && of_gradient;
    compared.allowed =
        std::max(options.factor * (as_coarse ? kAsCoarse : 1) * compared.noise, kSketchRounding);
    const std::pair<uint32_t, uint32_t> batch{compared.a.activity.step, compared.micro_batch};
    const auto known = gradient ? units.find(batch) : units.end();
    if (known != units.end()) compared.unit = known->second;
    const bool parameter = result.texts.text(compared.a.slot).starts_with("param:");
    compared.placement = find_placement(whole, values, compared.allowed, compared.unit,
                                        parameter ? Sums::none : Sums::tried);
    compared.norm = norm(whole.sets[0].sketches[0].sums);
    const bool zero = compared.norm == 0;
    compared.state = state_of(compared, zero);
    // One number is always a multiple. A port's loss is no other one's.
    if (result.port.told && compared.a.activity.kind == EventKind::loss &&
        compared.state == TensorState::scaled) {
      compared.placement.error = std::abs(compared.placement.factor - 1);
      compared.placement.factor = 1;
      compared.state = TensorState::beyond;
    }
    // The first gradient of a micro-batch is the unit of all.
    if (gradient && known == units.end() && !zero &&
        (compared.state == TensorState::scaled || compared.state == TensorState::equal ||
         compared.state == TensorState::partial)) {
      units[batch] = compared.unit = compared.placement.factor;
      compared.placement.factor = 1;
      compared.state = state_of(compared, zero);
    }
  }
  double allowed = 0;  // of losses
  for (const ComparedTensor& compared : result.tensors)
    if (compared.a.activity.kind == EventKind::loss) allowed = std::max(allowed, compared.allowed);
  result.summed_losses = steps_with_summed_losses(result.reference, a, ranks, b, allowed);
  result.declared = declared_tensors(reference, candidate, result, ranks);
  return result;
}

}  // namespace opguard
