// Two ways lead from a declaration to a tensor of the reference.
//
//   by name    the declared slot is one of ComparedTensor::b           add_compared
//   by bytes   y = DTensor.from_local(part, ..), and `part` is one     add_others
//
// By bytes a rank's y must be some tensor that is explained (equal, partial or scaled). All ranks
// must lead to the same one: else it stands for none.
//
// Every text is parsed once. Ranks of one mesh share it, and so do all layers.
#include "align/tolerance/declared_tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "align/tolerance/held_targets.h"
#include "align/tolerance/judged_values.h"
#include "align/values/value_index.h"

namespace opguard {
namespace {

class DeclaredTensors {
 public:
  DeclaredTensors(const Run& reference, const Run& candidate, const Comparison& comparison)
      : candidate_(candidate), comparison_(comparison), a_(reference), b_(candidate) {}

  std::vector<DeclaredTensor> all(const std::vector<ProcessTensors>& ranks) {
    for (const ProcessTensors& rank : ranks)
      for (const SketchedTensor& tensor : rank.tensors)
        if (tensor.declared != kNone) texts_[number_of(tensor.at)] = tensor.declared;
    if (texts_.empty()) return {};
    for (uint32_t i = 0; i < comparison_.tensors.size(); ++i) add_compared(i);
    add_others(ranks);
    std::stable_sort(
        found_.begin(), found_.end(),
        [](const DeclaredTensor& x, const DeclaredTensor& y) { return x.tensor < y.tensor; });
    return std::move(found_);
  }

 private:
  // A slot's number is unique in its process: 24 bits for the process, 40 for the slot.
  static uint64_t number_of(const SlotRef& at) {
    return uint64_t(static_cast<uint32_t>(at.event.process)) << 40 | at.slot;
  }

  void add_compared(uint32_t number) {
    const ComparedTensor& tensor = comparison_.tensors[number];
    if (std::any_of(tensor.b.begin(), tensor.b.end(),
                    [&](const SlotRef& b) { return texts_.contains(number_of(b)); }))
      add({number, true, tensor.b, tensor.ranks, "", DeclaredState::untold});
  }

  // What the reference has no name for: its bytes may be a compared tensor's.
  void add_others(const std::vector<ProcessTensors>& ranks) {
    std::unordered_map<uint64_t, bool> compared;
    std::map<std::pair<int32_t, ValueKey>, uint32_t> by_value;
    for (uint32_t i = 0; i < comparison_.tensors.size(); ++i)
      for (const SlotRef& b : comparison_.tensors[i].b) {
        compared[number_of(b)] = true;
        if (is_explained(comparison_.tensors[i]))
          by_value.try_emplace({b.event.process, key_of(b)}, i);
      }
    using Name = std::tuple<uint32_t, uint32_t, EventKind, Phase, uint32_t, uint32_t, uint32_t,
                            uint32_t, uint32_t>;
    std::map<Name, DeclaredTensor> others;
    for (const ProcessTensors& rank : ranks)
      for (const SketchedTensor& t : rank.tensors) {
        if (t.declared == kNone || compared.contains(number_of(t.at))) continue;
        const auto same = by_value.find({t.at.event.process, key_of(t.at)});
        if (same == by_value.end()) continue;
        const Activity& of = t.activity;
        DeclaredTensor& other = others[{of.boundary, of.module, of.kind, of.phase, of.step,
                                        t.execution, t.node, t.again, t.slot}];
        if (other.b.empty()) other = {same->second, false};
        if (other.tensor != same->second) other.tensor = kNone;
        other.b.push_back(t.at);
        other.ranks.push_back(candidate_.processes[static_cast<size_t>(t.at.event.process)].rank);
      }
    // Ranks that have the bytes of several tensors have none of these.
    for (auto& [name, other] : others)
      if (other.tensor != kNone) add(std::move(other));
  }

  static bool is_explained(const ComparedTensor& tensor) {
    return tensor.state == TensorState::equal || tensor.state == TensorState::partial ||
           tensor.state == TensorState::scaled;
  }

  ValueKey key_of(const SlotRef& at) const {
    const ProcessLog& log = candidate_.processes[static_cast<size_t>(at.event.process)];
    return value_key(log, log.slots[at.slot]);
  }

  void add(DeclaredTensor tensor) {
    tensor.state = state_of_declared(tensor);
    if (!tensor.text.empty()) found_.push_back(std::move(tensor));
  }

  // Also sets the text, by the first rank that declares it. `untold` as soon as one rank declares
  // nothing, or something that cannot be read, or holds no finite sketch.
  DeclaredState state_of_declared(DeclaredTensor& tensor) {
    const ComparedTensor& of = comparison_.tensors[tensor.tensor];
    std::vector<Declaration> declared;
    std::vector<RankValue> values;
    for (size_t i = 0; i < tensor.b.size(); ++i) {
      const auto text = texts_.find(number_of(tensor.b[i]));
      if (text == texts_.end()) return DeclaredState::untold;
      const std::string& said = comparison_.texts.text(text->second);
      const auto [known, fresh] = parsed_.try_emplace(text->second);
      if (fresh) known->second = parse_declaration(said);
      if (tensor.text.empty()) tensor.text = known->second ? known->second->text : said;
      const Sketch* own = b_.own(tensor.b[i]);
      if (!known->second || own == nullptr || !own->finite()) return DeclaredState::untold;
      declared.push_back(*known->second);
      values.push_back(
          {static_cast<uint32_t>(tensor.ranks[i]), b_.meta(tensor.b[i]).shape, own->sums});
      for (const Sketch& unpadded : b_.unpadded(tensor.b[i]))
        values.back().unpadded.push_back(unpadded.sums);
    }
    if (of.state == TensorState::unjudged || !of.finite_a || !of.finite_b || values.empty())
      return DeclaredState::untold;
    const WholeValue whole{a_.meta(of.a.at).shape, a_.sets(of.a.at, RankShapes(values).shapes)};
    const DeclaredState state =
        check_declaration(whole, values, declared, of.placement, of.allowed, of.unit);
    const bool summed_later = state == DeclaredState::otherwise && declared.front().by_attributes &&
                              is_summed_later(comparison_, of);
    return summed_later ? DeclaredState::untold : state;
  }

  const Run& candidate_;
  const Comparison& comparison_;
  SketchReader a_, b_;
  std::unordered_map<uint64_t, uint32_t> texts_;  // of Texts, by process and slot
  std::unordered_map<uint32_t, std::optional<Declaration>> parsed_;
  std::vector<DeclaredTensor> found_;
};

}  // namespace

std::vector<DeclaredTensor> declared_tensors(const Run& reference, const Run& candidate,
                                             const Comparison& comparison,
                                             const std::vector<ProcessTensors>& ranks) {
  return DeclaredTensors(reference, candidate, comparison).all(ranks);
}

}  // namespace opguard
