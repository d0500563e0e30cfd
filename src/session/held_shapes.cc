// A tensor's identity across ranks is (boundary, slot, how often that came before in its process).
// A rank's log becomes a list of (tensor, shape) by small numbers; the lists of all ranks are then
// read side by side.
//
//   rank 0   (0, 0) (1, 2)      tensor 0 has shape 0 on rank 0
//   rank 1   (0, 1) (1, 2)      and shape 1 on rank 1: uneven; tensor 1 is the same on both
//
// Shapes that differ in one dimension only are parts of it. Where several dimensions differ, each
// is counted as parts of its own, and those seen most often are kept.
//
// Counterexample: a tensor that one rank does not have, as of a pipeline's other stage. It is left
// out: parts are told of what all ranks hold.
#include "session/held_shapes.h"

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace opguard {
namespace {

using Shape = std::vector<int64_t>;

constexpr size_t kMostParts = 32;
constexpr std::string_view kParameter = "param:";

// Numbers of texts and shapes that several logs share.
template <typename Value>
class SharedNumbers {
 public:
  uint32_t number(const Value& value) {
    return numbers_.try_emplace(value, static_cast<uint32_t>(numbers_.size())).first->second;
  }

 private:
  std::map<Value, uint32_t> numbers_;
};

// `times`: how often this boundary and slot came before in the process.
struct RankTensor {
  uint32_t boundary, slot, times;
  bool operator==(const RankTensor&) const = default;
};

struct RankTensorHash {
  size_t operator()(const RankTensor& key) const {
    uint64_t h = (uint64_t{key.boundary} << 32 | key.slot) * 0x9e3779b97f4a7c15u;
    h = (h ^ key.times) * 0xbf58476d1ce4e5b9u;
    return h ^ (h >> 31);
  }
};

// What one rank holds of a tensor.
struct HeldShape {
  uint32_t tensor, shape;
};

// Of each rank the process with most events, in the order of the ranks.
std::vector<const ProcessLog*> logs_of_ranks(const Run& run) {
  std::map<int32_t, const ProcessLog*> by_rank;
  for (const ProcessLog& log : run.processes) {
    const auto [rank, fresh] = by_rank.try_emplace(log.rank, &log);
    if (rank->second->events.size() < log.events.size()) rank->second = &log;
  }
  std::vector<const ProcessLog*> logs;
  for (const auto& [rank, log] : by_rank) logs.push_back(log);
  return logs;
}

class ShapesOfRanks {
 public:
  // Of each tensor that all of them hold, the shapes in the order of the ranks.
  explicit ShapesOfRanks(const std::vector<const ProcessLog*>& logs) {
    for (const ProcessLog* log : logs) add(*log);
    for (const std::vector<HeldShape>& held : held_)
      for (const HeldShape& one : held) {
        if (of_.size() <= one.tensor) of_.resize(one.tensor + size_t{1});
        of_[one.tensor].push_back(one.shape);
      }
    std::erase_if(of_, [&](const auto& shapes) { return shapes.size() != logs.size(); });
  }

  // Into how many parts of which sizes ranks cut a dimension, and of how many tensors.
  std::map<Shape, uint64_t> parts() const {
    std::map<std::vector<uint32_t>, uint64_t> uneven;
    for (const std::vector<uint32_t>& shapes : of_)
      if (std::any_of(shapes.begin(), shapes.end(), [&](uint32_t s) { return s != shapes[0]; }))
        ++uneven[shapes];
    std::map<Shape, uint64_t> found;
    for (const auto& [shapes, times] : uneven)
      for (size_t d = 0; d < shapes_[shapes[0]].size(); ++d) {
        Shape sizes;
        for (const uint32_t shape : shapes)
          if (shapes_[shape].size() == shapes_[shapes[0]].size())
            sizes.push_back(shapes_[shape][d]);
        if (sizes.size() == shapes.size() && sizes != Shape(sizes.size(), sizes[0]))
          found[sizes] += times;
      }
    return found;
  }

 private:
  // One rank's list. A dimensionless tensor is left out: it has no parts. Of what is read only
  // state events count: there the parameters are.
  void add(const ProcessLog& log) {
    std::vector<HeldShape>& held = held_.emplace_back();
    std::vector<uint32_t> shape_of(log.metas.size(), kNone), text_of;
    std::unordered_map<uint64_t, uint32_t> times;
    const auto text = [&](uint32_t string) {
      if (text_of.size() <= string) text_of.resize(string + size_t{1}, kNone);
      if (text_of[string] == kNone) text_of[string] = texts_.number(log.text(string));
      return text_of[string];
    };
    for (uint64_t i = 0; i < log.events.size(); ++i) {
      const Event event = log.events[i];
      const EventSlots slots = log.slots_of(event);
      for (const Slot& slot : slots) {
        const bool state = event.kind == EventKind::state;
        if ((slot.kind == SlotKind::in && !state) || slot.meta == kNone) continue;
        if (log.metas[slot.meta].shape.empty()) continue;
        uint32_t& shape = shape_of[slot.meta];
        if (shape == kNone) {
          shape = numbers_.number(log.metas[slot.meta].shape);
          if (shape == shapes_.size()) shapes_.push_back(log.metas[slot.meta].shape);
        }
        const uint32_t boundary = text(event.boundary), name = text(slot.name);
        const uint32_t before = times[uint64_t{boundary} << 32 | name]++;
        const auto [tensor, fresh] = tensors_.try_emplace(RankTensor{boundary, name, before},
                                                          static_cast<uint32_t>(tensors_.size()));
        held.push_back({tensor->second, shape});
      }
    }
  }

  SharedNumbers<std::string> texts_;
  SharedNumbers<Shape> numbers_;
  std::vector<Shape> shapes_;
  std::unordered_map<RankTensor, uint32_t, RankTensorHash> tensors_;
  std::vector<std::vector<HeldShape>> held_;  // of each rank
  std::vector<std::vector<uint32_t>> of_;     // of each tensor
};

// As the first step reads them.
std::map<std::string, Shape> first_parameters(const ProcessLog& log) {
  std::map<std::string, Shape> found;
  for (uint64_t i = 0; i < log.events.size(); ++i) {
    if (log.events.kind(i) != EventKind::state) continue;
    const Event event = log.events[i];
    const EventSlots slots = log.slots_of(event);
    for (const Slot& slot : slots) {
      const std::string& name = log.text(slot.name);
      if (name.starts_with(kParameter) && slot.meta != kNone)
        found.try_emplace(name.substr(kParameter.size()), log.metas[slot.meta].shape);
    }
    if (!found.empty()) break;
  }
  return found;
}

}  // namespace

// A dimension is padded where the ranks' equal parts do not divide it and together hold more. So 4
// x 26 is 104, and the reference has 103. Counterexample: 5 over 4 ranks as 2, 2, 1, 0. These parts
// are not equal, so they are `parts` and no padding.
std::set<PaddedDim> padded_dims(const Run& reference, const Run& candidate) {
  std::set<PaddedDim> found;
  const auto ranks = static_cast<int64_t>(logs_of_ranks(candidate).size());
  const HeldShapes held = held_shapes(candidate);
  for (const ProcessLog* log : logs_of_ranks(reference))
    for (const auto& [name, whole] : first_parameters(*log)) {
      const auto other = held.parameters.find(name);
      if (other == held.parameters.end() || other->second.size() != whole.size()) continue;
      for (size_t d = 0; d < whole.size(); ++d) {
        const int64_t local = other->second[d];
        if (local > 0 && whole[d] % local != 0 && local * ranks >= whole[d])
          found.insert({whole[d], local});
      }
    }
  return found;
}

// Empty for a run of one rank: it holds every tensor whole.
HeldShapes held_shapes(const Run& run) {
  HeldShapes found;
  const std::vector<const ProcessLog*> logs = logs_of_ranks(run);
  if (logs.size() < 2) return found;
  const std::map<Shape, uint64_t> parts = ShapesOfRanks(logs).parts();
  std::vector<std::pair<uint64_t, Shape>> by_times;
  for (const auto& [sizes, times] : parts) by_times.emplace_back(times, sizes);
  std::stable_sort(by_times.begin(), by_times.end(),
                   [](const auto& x, const auto& y) { return x.first > y.first; });
  for (const auto& [times, sizes] : by_times)
    if (found.parts.size() < kMostParts) found.parts.push_back(sizes);
  std::map<std::string, bool> differs;
  for (const ProcessLog* log : logs)
    for (auto& [name, shape] : first_parameters(*log)) {
      const auto [known, fresh] = found.parameters.try_emplace(name, shape);
      differs[name] |= known->second != shape;
    }
  std::erase_if(found.parameters, [&](const auto& of) { return differs[of.first]; });
  return found;
}

}  // namespace opguard
