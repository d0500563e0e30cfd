// The tensor's own placement is asked first, then one of the same form, then the shapes.
//
//   form    boundary, node, slot, and the module with its numbers as '#': "layers.#.attention"
//   shape   [8, 64] of [8, 128] on ranks 0, 1: cut into (2). If all tensors cut so on these ranks
//           have rank 0 first, this one has, too
//
// Counterexample: two answers for one cut. Tensor parallel and data parallel groups may both have
// halves on two ranks, each in its own order. Then the shape says nothing.
#include "align/tolerance/expected_placement.h"

namespace opguard {
namespace {

// Into how many parts each dimension that is cut is; empty where the shapes do not divide.
std::vector<int64_t> cut_parts(const std::vector<int64_t>& whole,
                               const std::vector<int64_t>& local) {
  if (whole.size() != local.size()) return {};
  std::vector<int64_t> parts;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (local[d] == 0 || whole[d] % local[d] != 0) return {};
    if (whole[d] != local[d]) parts.push_back(whole[d] / local[d]);
  }
  return parts;
}

bool is_explained(const ComparedTensor& tensor) {
  return tensor.state != TensorState::beyond && tensor.state != TensorState::unjudged &&
         tensor.placement.kind != PlacementKind::unknown && !tensor.placement.ambiguous;
}

// The first set of its form is cut in the dimensions as they are. Those behind it are cut within
// each sequence of a batch that is folded into rows.
bool is_folded(const std::vector<SketchSet>& sets, size_t number) {
  for (size_t i = 0; i < number; ++i)
    if (sets[i].kind == sets[number].kind && sets[i].local == sets[number].local &&
        sets[i].dim == sets[number].dim)
      return true;
  return false;
}

}  // namespace

ExpectedPlacements::ExpectedPlacements(const Run& reference, const Run& candidate,
                                       const Comparison& comparison)
    : comparison_(comparison), a_(reference), b_(candidate) {
  for (uint32_t i = 0; i < comparison.tensors.size(); ++i) {
    const ComparedTensor& tensor = comparison.tensors[i];
    if (!is_explained(tensor)) continue;
    alike_[form_of(tensor)].push_back(i);
    if (tensor.placement.kind != PlacementKind::sharded &&
        tensor.placement.kind != PlacementKind::pieces)
      continue;
    Held held;
    for (const HeldPieces& pieces : tensor.placement.held)
      held.emplace_back(pieces.first, pieces.second);
    held_[{tensor.ranks, cut_parts(a_.meta(tensor.a.at).shape, local_of(tensor))}].insert(held);
  }
}

ExpectedPlacements::Form ExpectedPlacements::form_of(const ComparedTensor& tensor) const {
  return {tensor.a.activity.boundary, tensor.a.node, tensor.a.slot,
          without_numbers(comparison_.texts.text(tensor.a.activity.module))};
}

std::vector<int64_t> ExpectedPlacements::local_of(const ComparedTensor& tensor) {
  return b_.meta(tensor.b.front()).shape;
}

// None of an uneven cut, or of rows of a folded batch: `held` numbers pieces of an even grid.
std::optional<ExpectedPlacement> ExpectedPlacements::as_found(const ComparedTensor& tensor,
                                                              PlacementSource source) {
  const TensorPlacement& found = tensor.placement;
  const std::vector<SketchSet> sets = a_.sets(tensor.a.at, {local_of(tensor)});
  if (found.kind == PlacementKind::unknown || found.set >= sets.size() ||
      is_folded(sets, found.set))
    return std::nullopt;
  const SketchSet& set = sets[found.set];
  if (set.kind == SketchSetKind::uneven) return std::nullopt;
  return ExpectedPlacement{source, found.kind, set.kind, set.dim, local_of(tensor), found.held};
}

std::optional<ExpectedPlacement> ExpectedPlacements::by_shape(const ComparedTensor& tensor) {
  const std::vector<int64_t> whole = a_.meta(tensor.a.at).shape, local = local_of(tensor);
  ExpectedPlacement expected{PlacementSource::shape, PlacementKind::replicated,
                             SketchSetKind::whole, 0, local};
  expected.held.resize(tensor.ranks.size());
  if (whole == local) return expected;
  const Parts parts = cut_parts(whole, local);
  const auto known = parts.empty() ? held_.end() : held_.find({tensor.ranks, parts});
  // Two ways to hold such pieces are known, as of tensor and of data parallel groups.
  if (known == held_.end() || known->second.size() != 1) return std::nullopt;
  const std::vector<SketchSet> sets = a_.sets(tensor.a.at, {local_of(tensor)});
  for (size_t i = 0; i < sets.size(); ++i)
    if (sets[i].local == local && is_folded(sets, i)) return std::nullopt;
  const Held& only = *known->second.begin();
  expected.kind = PlacementKind::sharded;
  expected.set = SketchSetKind::grid;
  for (size_t i = 0; i < only.size(); ++i) {
    if (only[i].first != only[i].second) return std::nullopt;  // a zigzag
    expected.held[i] = {only[i].first, only[i].second};
  }
  return expected;
}

std::optional<ExpectedPlacement> ExpectedPlacements::of(uint32_t number) {
  const ComparedTensor& tensor = comparison_.tensors[number];
  const std::vector<int64_t> whole = a_.meta(tensor.a.at).shape, local = local_of(tensor);
  for (const SlotRef& b : tensor.b)
    if (b_.meta(b).shape != local) return std::nullopt;
  if (is_explained(tensor)) return as_found(tensor, PlacementSource::found);
  const auto alike = alike_.find(form_of(tensor));
  for (const uint32_t other : alike == alike_.end() ? std::vector<uint32_t>() : alike->second) {
    const ComparedTensor& known = comparison_.tensors[other];
    if (known.ranks == tensor.ranks && a_.meta(known.a.at).shape == whole &&
        local_of(known) == local)
      return as_found(known, PlacementSource::alike);
  }
  return by_shape(tensor);
}

}  // namespace opguard
