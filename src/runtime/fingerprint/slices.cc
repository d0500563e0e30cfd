// A piece is a view of the tensor, and its sketch is made as if the rest were zero. So pieces of
// one set add up to the whole's.
//
//   whole       the tensor                             its own sketch, known from the pass of og1
//   grid        each cell of an even cut
//   halves      each half cell along one dimension, twice: as the first and as the second half
//   uneven      the pieces that uneven_cuts.h says
//   unpadded    the tensor without its pad
//   exchanged   the tensor with two dimensions exchanged, or one moved: strides alone change
//
// The cost: each set reads its pieces from memory anew.
#include "runtime/fingerprint/slices.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace opguard {
namespace {

using Shape = std::vector<int64_t>;

constexpr size_t kMostDims = 8;  // of an exchange

// Into how many parts each dimension is cut. Empty: it is not cut into equal parts.
Shape parts_of(const Shape& whole, const Shape& local) {
  Shape parts;
  for (size_t d = 0; d < whole.size(); ++d) {
    if (local[d] == 0 || whole[d] % local[d] != 0) return {};
    parts.push_back(whole[d] / local[d]);
  }
  return parts;
}

// Calls at(index) for each index of a grid, the last dimension fastest.
template <typename At>
void each_cell(const Shape& parts, At at) {
  Shape index(parts.size(), 0);
  for (;;) {
    at(index);
    size_t d = parts.size();
    while (d > 0 && ++index[d - 1] == parts[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

// A view: nothing is copied.
Elements part_of(const Elements& whole, const Shape& first, const Shape& shape) {
  Elements part = whole;
  part.shape = shape;
  const char* at = static_cast<const char*>(whole.data);
  for (size_t d = 0; d < first.size(); ++d) at += first[d] * whole.strides[d];
  part.data = at;
  return part;
}

// Each cell as a tensor of its own, from row and column 0 on.
SketchSet grid_of(const Elements& e, FloatType type, const Shape& local, const Shape& parts) {
  SketchSet set{SketchSetKind::grid, local, 0, {}};
  each_cell(parts, [&](const Shape& index) {
    Shape first(local.size());
    for (size_t d = 0; d < local.size(); ++d) first[d] = index[d] * local[d];
    set.sketches.push_back(sketch(part_of(e, first, local), type));
  });
  return set;
}

// A rank may hold two pieces that are no neighbours (zigzag, slices.h). Which two is found later.
// So each piece is sketched at both places.
SketchSet halves_of(const Elements& e, FloatType type, const Shape& local, Shape parts,
                    size_t dim) {
  SketchSet set{SketchSetKind::halves, local, static_cast<uint8_t>(dim), {}};
  Shape piece = local;
  piece[dim] /= 2;
  parts[dim] *= 2;
  const int64_t along = std::exchange(parts[dim], 1);
  each_cell(parts, [&](const Shape& index) {
    for (int64_t i = 0; i < along; ++i) {
      Shape first(local.size());
      for (size_t d = 0; d < local.size(); ++d) first[d] = index[d] * local[d];
      first[dim] = i * piece[dim];
      const Elements part = part_of(e, first, piece);
      Frame frame{local, Shape(local.size(), 0)};
      set.sketches.push_back(sketch(part, type, &frame));
      frame.first[dim] = piece[dim];
      set.sketches.push_back(sketch(part, type, &frame));
    }
  });
  return set;
}

bool cut_in_first(const Shape& parts) {
  for (size_t d = 1; d < parts.size(); ++d)
    if (parts[d] != 1) return false;
  return parts[0] > 1;
}

// [32, 96] as [2, 16, 96]: the numbers of rows stay what they are.
void unfold(Shape& shape, int64_t outer) {
  shape[0] /= outer;
  shape.insert(shape.begin(), outer);
}

// The pieces along the inner of two dimensions that are one in the tensor.
void add_folded(const Elements& e, FloatType type, const Shape& local, int64_t outer,
                std::vector<SketchSet>& sets) {
  if (outer < 2 || outer >= local[0] || local[0] % outer != 0) return;
  Elements unfolded = e;
  unfold(unfolded.shape, outer);
  unfolded.strides.insert(unfolded.strides.begin(), e.strides[0] * unfolded.shape[1]);
  Shape piece = local;
  unfold(piece, outer);
  const Shape parts = parts_of(unfolded.shape, piece);
  sets.push_back(grid_of(unfolded, type, piece, parts));
  if (piece[1] % 2 == 0) sets.push_back(halves_of(unfolded, type, piece, parts, 1));
  // As a rank has it.
  for (size_t i = sets.size() - (piece[1] % 2 == 0 ? 2 : 1); i < sets.size(); ++i) {
    sets[i].local = local;
    sets[i].dim = 0;
  }
}

// False: its elements do not follow each other in memory.
bool lay_end_to_end(Elements& e) {
  auto step = static_cast<int64_t>(e.size);
  for (size_t d = e.shape.size(); d-- > 0; step *= e.shape[d])
    if (e.shape[d] != 1 && e.strides[d] != step) return false;
  const auto size = static_cast<int64_t>(e.size);
  e.shape = {step / size};
  e.strides = {size};
  return true;
}

// What lies behind the end of a padded dimension counts as zero.
void add_uneven(const Elements& e, FloatType type, const UnevenPieces& pieces,
                std::vector<SketchSet>& sets) {
  SketchSet set{SketchSetKind::uneven, pieces.local, pieces.outer, {}, pieces.starts};
  Elements whole = e;
  if (pieces.local.size() != e.shape.size() && !lay_end_to_end(whole)) return;
  Shape local = pieces.local, counts;
  if (pieces.outer != 0) {
    unfold(whole.shape, pieces.outer);
    whole.strides.insert(whole.strides.begin(), e.strides[0] * whole.shape[1]);
    unfold(local, pieces.outer);
  }
  for (const Shape& starts : pieces.starts) counts.push_back(static_cast<int64_t>(starts.size()));
  each_cell(counts, [&](const Shape& index) {
    Shape first(local.size()), shape(local.size());
    for (size_t d = 0; d < local.size(); ++d) {
      first[d] = pieces.starts[d][static_cast<size_t>(index[d])];
      shape[d] = std::min(local[d], whole.shape[d] - first[d]);
    }
    const Frame frame{local, Shape(local.size(), 0)};
    set.sketches.push_back(
        sketch(part_of(whole, first, shape), type, shape == local ? nullptr : &frame));
  });
  sets.push_back(std::move(set));
}

void move_dim(Shape& dims, size_t from, size_t to) {
  const int64_t moved = dims[from];
  dims.erase(dims.begin() + static_cast<ptrdiff_t>(from));
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(to), moved);
}

// The code has one dimension in its upper four bits, and the other below. With kMovedTo in it, the
// first was moved to the other's place, and not exchanged with it.
void add_exchanged(const Elements& e, FloatType type, const std::set<Shape>& wanted,
                   unsigned threads, std::vector<SketchSet>& sets) {
  const size_t dims = std::min(e.shape.size(), kMostDims);
  const auto add = [&](const Elements& other, size_t code) {
    if (other.shape == e.shape || !wanted.contains(other.shape)) return;
    sets.push_back({SketchSetKind::exchanged,
                    other.shape,
                    static_cast<uint8_t>(code),
                    {sketch(other, type, nullptr, threads)}});
  };
  for (size_t i = 0; i < dims; ++i)
    for (size_t j = i + 1; j < dims; ++j) {
      Elements other = e;
      std::swap(other.shape[i], other.shape[j]);
      std::swap(other.strides[i], other.strides[j]);
      add(other, i * 16 + j);
    }
  // Neighbours that move are exchanged.
  for (size_t from = 0; from < dims; ++from)
    for (size_t to = 0; to < dims; ++to) {
      if (from + 1 >= to && to + 1 >= from) continue;
      Elements other = e;
      move_dim(other.shape, from, to);
      move_dim(other.strides, from, to);
      add(other, from * 16 + kMovedTo + to);
    }
}

}  // namespace

bool cuts(const Shape& whole, const Shape& local, int64_t world) {
  if (local.size() != whole.size() || local == whole) return false;
  const Shape parts = parts_of(whole, local);
  int64_t cells = parts.empty() ? 0 : 1;
  for (const int64_t n : parts) {
    cells *= n;
    if (cells > world) return false;
  }
  return cells > 1;
}

std::vector<SketchSet> sketch_sets(const Elements& elements, FloatType type,
                                   const PiecesWanted& wanted, unsigned threads,
                                   const Sketch* known) {
  std::vector<SketchSet> sets = {
      {SketchSetKind::whole,
       {},
       0,
       {known != nullptr ? *known : sketch(elements, type, nullptr, threads)}}};
  for (const Shape& local : wanted.locals) {
    const Shape parts = parts_of(elements.shape, local);
    sets.push_back(grid_of(elements, type, local, parts));
    for (size_t d = 0; d < local.size(); ++d)
      if (parts[d] > 1 && local[d] % 2 == 0)
        sets.push_back(halves_of(elements, type, local, parts, d));
    if (!local.empty() && cut_in_first(parts))
      for (const int64_t size : wanted.outer) add_folded(elements, type, local, size, sets);
  }
  for (const UnevenPieces& pieces : wanted.uneven) add_uneven(elements, type, pieces, sets);
  for (const Unpadded& without : wanted.unpadded) {
    Shape shape = elements.shape;
    shape[without.dim] = without.size;
    const Shape first(shape.size(), 0);
    const Frame frame{elements.shape, first};
    sets.push_back({SketchSetKind::unpadded,
                    shape,
                    without.dim,
                    {sketch(part_of(elements, first, shape), type, &frame)}});
  }
  if (!wanted.exchanged.empty()) add_exchanged(elements, type, wanted.exchanged, threads, sets);
  return sets;
}

}  // namespace opguard
