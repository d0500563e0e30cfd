// Uneven and padded shards are found from sketches: of 2,000 right ones none is told wrongly, and
// each wrong one is a difference.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "align/tolerance/placement.h"
#include "runtime/fingerprint/slices.h"
#include "sketched_tensor.h"

namespace opguard {
namespace {

// What the ranks of a mesh hold, cut along one dimension and replicated or added up along another.
struct UnevenCase {
  Tensor whole;
  std::vector<Tensor> ranks;
  size_t dim = 0;
  std::vector<int64_t> sizes;  // of the ranks of one group
  bool partial = false, padded = false;
  std::string text;
};

Tensor zeros(Shape shape) {
  int64_t count = 1;
  for (const int64_t n : shape) count *= n;
  return {std::move(shape), std::vector<double>(static_cast<size_t>(count), 0)};
}

class UnevenMaker {
 public:
  explicit UnevenMaker(uint64_t seed) : random_(seed) {}

  int64_t below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  double normal() { return normal_(random_); }

  Tensor tensor(Shape shape) {
    Tensor t = zeros(std::move(shape));
    const double scale = std::pow(10, below(7) - 3);
    for (double& x : t.values) x = scale * normal();
    return t;
  }

  // As torch.chunk cuts, so that the last may have nothing; or any sizes, as by hand.
  std::vector<int64_t> sizes_of(int64_t whole, int64_t parts, bool as_chunk) {
    std::vector<int64_t> sizes;
    const int64_t each = (whole + parts - 1) / parts;
    for (int64_t rest = whole; parts > 0; --parts) {
      int64_t size =
          as_chunk ? std::min(each, rest) : 1 + below(std::max<int64_t>(1, rest - parts));
      if (!as_chunk && parts == 1) size = rest;
      sizes.push_back(size);
      rest -= size;
    }
    return sizes;
  }

  UnevenCase make() {
    UnevenCase made;
    Shape shape(static_cast<size_t>(1 + below(3)));
    for (int64_t& n : shape) n = 4 + below(24);
    made.dim = static_cast<size_t>(below(static_cast<int64_t>(shape.size())));
    const int64_t parts = 2 + below(3), copies = 1 + below(2);
    int64_t& cut = shape[made.dim];
    made.padded = below(4) == 0;
    while (cut < 5 || cut % parts == 0) ++cut;
    made.whole = tensor(shape);
    made.sizes = sizes_of(cut, parts, made.padded || below(2) == 0);
    // Of a few numbers many sums are about the same.
    made.partial = copies > 1 && shape.size() > 1 && below(2) == 0;
    std::vector<Tensor> pieces;
    int64_t first = 0;
    for (const int64_t size : made.sizes) {
      Tensor piece = part_of(made.whole, made.dim, first, size);
      if (made.padded) {
        Shape pad = piece.shape;
        pad[made.dim] = made.sizes[0] - size;
        piece = joined(piece, zeros(pad), made.dim);
      }
      pieces.push_back(std::move(piece));
      first += size;
    }
    const bool inner = below(2) == 0;  // the ranks of a group are neighbours
    made.ranks.resize(static_cast<size_t>(parts * copies));
    for (int64_t p = 0; p < parts; ++p) {
      Tensor rest = pieces[static_cast<size_t>(p)];
      for (int64_t c = 0; c < copies; ++c) {
        Tensor held = rest;
        if (made.partial && c + 1 < copies)
          for (size_t i = 0; i < held.values.size(); ++i) {
            // A pad has no parts.
            held.values[i] = normal() * std::fabs(rest.values[i]);
            rest.values[i] -= held.values[i];
          }
        made.ranks[static_cast<size_t>(inner ? c * parts + p : p * copies + c)] = held;
      }
    }
    for (const int64_t n : shape) made.text += std::to_string(n) + " ";
    made.text += "along " + std::to_string(made.dim) + " sizes";
    for (const int64_t n : made.sizes) made.text += " " + std::to_string(n);
    made.text += " copies " + std::to_string(copies) + (made.partial ? " partial" : "") +
                 (made.padded ? " padded" : "") + (inner ? " inner" : "");
    return made;
  }

  void add_noise(UnevenCase& made, double noise) {
    for (Tensor& t : made.ranks)
      for (double& x : t.values) x *= 1 + noise * normal();
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<> normal_;
};

// As the reference's recorder takes it from the shapes that ranks hold.
WholeValue reference_of(const UnevenCase& made) {
  UnevenCuts known;
  const auto world = static_cast<int64_t>(made.ranks.size());
  std::vector<int64_t> parts;
  for (const Tensor& t : made.ranks) parts.push_back(t.shape[made.dim]);
  if (made.padded)
    known.add_padded(made.whole.shape[made.dim], parts[0]);
  else
    known.add_parts(parts);
  PiecesWanted wanted;
  std::vector<Shape> shapes;
  for (const Tensor& t : made.ranks)
    if (std::find(shapes.begin(), shapes.end(), t.shape) == shapes.end()) shapes.push_back(t.shape);
  for (const Shape& local : shapes) {
    if (cuts(made.whole.shape, local, world)) wanted.locals.push_back(local);
    for (UnevenPieces& pieces : known.pieces(made.whole.shape, local, world, {}))
      wanted.uneven.push_back(std::move(pieces));
  }
  return {made.whole.shape, sketch_sets(made.whole.elements(), FloatType::float64, wanted)};
}

std::vector<RankValue> values_of(const UnevenCase& made) {
  std::vector<RankValue> held;
  for (uint32_t r = 0; r < made.ranks.size(); ++r) held.push_back(made.ranks[r].held(r));
  return held;
}

// Two pieces are one size, or one is nothing: which is which nobody asks.
TEST(UnevenPlacement, IsFoundAndNeverWrong) {
  UnevenMaker maker(103);
  uint64_t ambiguous = 0, wrong = 0;
  constexpr int kCases = 2000;
  const double noises[] = {0, 1e-7, 1e-3, 0.03};
  for (int i = 0; i < kCases; ++i) {
    const double noise = noises[i % 4];
    UnevenCase made = maker.make();
    maker.add_noise(made, noise);
    const double allowed = 4 * std::max(noise, 6e-8);
    const TensorPlacement found = find_placement(reference_of(made), values_of(made), allowed);
    if (found.ambiguous) {
      ++ambiguous;
      continue;
    }
    const PlacementKind kind = made.partial ? PlacementKind::partial : PlacementKind::sharded;
    const bool right = found.kind == kind && found.omitted == 0 && found.factor == 1 &&
                       found.stray.empty() &&
                       found.dims == std::vector<uint8_t>{static_cast<uint8_t>(made.dim)};
    if (right) continue;
    if (++wrong <= 10)
      ADD_FAILURE() << made.text << " noise " << noise << ": found " << static_cast<int>(found.kind)
                    << " factor " << found.factor << " error " << found.error << " omitted "
                    << found.omitted;
  }
  EXPECT_EQ(wrong, 0u);
  EXPECT_LT(ambiguous, kCases / 50u);
}

// A piece from another place, one that is dropped, a pad that is not zero, two that are exchanged.
TEST(UnevenPlacement, EachWrongOneIsADifference) {
  UnevenMaker maker(104);
  int all = 0, found_so = 0;
  for (int i = 0; i < 4000; ++i) {
    UnevenCase made = maker.make();
    if (made.partial) continue;
    Tensor* last = nullptr;
    for (Tensor& t : made.ranks)
      if (std::any_of(t.values.begin(), t.values.end(), [](double x) { return x != 0; })) last = &t;
    const int64_t size = last->shape[made.dim], cut = made.whole.shape[made.dim];
    std::string fault;
    const bool has_copies = made.ranks.size() > made.sizes.size();
    if (i % 3 == 0 && !made.padded && size < cut && !has_copies) {
      fault = "offset";
      // Any other place than its own. Of copies one rank with another's piece leaves none out.
      const Tensor own = *last;
      *last = part_of(made.whole, made.dim, maker.below(cut - size + 1), size);
      if (last->values == own.values) continue;
    } else if (i % 3 == 1) {
      fault = "dropped";
      // Every rank that has this piece has zeros instead.
      const Tensor gone = *last;
      bool other = false;
      for (Tensor& t : made.ranks)
        if (t.values == gone.values) {
          std::fill(t.values.begin(), t.values.end(), 0);
          other = true;
        }
      if (!other) continue;
    } else if (i % 3 == 2 && made.padded) {
      fault = "pad";
      last->values.back() += 1 + std::fabs(last->values[0]) * 10;
    } else {
      continue;
    }
    ++all;
    const TensorPlacement found = find_placement(reference_of(made), values_of(made), 1e-6);
    const bool difference = found.kind == PlacementKind::unknown || !found.stray.empty() ||
                            found.omitted > 0 || found.kind == PlacementKind::partial ||
                            found.kind == PlacementKind::partial_mean || found.factor != 1;
    found_so += difference;
    EXPECT_TRUE(difference) << made.text << " " << fault << " error " << found.error;
  }
  EXPECT_GT(all, 1000);
  EXPECT_EQ(found_so, all);
}

// What is left out is told as a gap, whatever its size.
TEST(UnevenPlacement, AShardThatNoRankHoldsIsOmitted) {
  UnevenMaker maker(3);
  UnevenCase made;
  made.whole = maker.tensor({103, 8});
  int64_t first = 0;
  for (const int64_t size : {26, 26, 26, 25}) {
    made.ranks.push_back(part_of(made.whole, 0, first, size));
    first += size;
  }
  const WholeValue whole = reference_of(made);
  std::vector<RankValue> held = values_of(made);
  EXPECT_EQ(find_placement(whole, held, 1e-6).omitted, 0u);
  held.pop_back();
  const TensorPlacement three = find_placement(whole, held, 1e-6);
  EXPECT_EQ(three.kind, PlacementKind::sharded);
  EXPECT_EQ(three.omitted, 1u);
  held.erase(held.begin() + 1);
  EXPECT_EQ(find_placement(whole, held, 1e-6).omitted, 2u);
}

// FSDP1 lays all parameters end to end: a rank has the end of one, or nothing of it.
TEST(UnevenPlacement, ElementsLaidEndToEnd) {
  UnevenMaker maker(9);
  const Tensor whole = maker.tensor({31, 13});
  const std::vector<int64_t> sizes = {0, 300, 103};
  UnevenCuts known;
  known.add_parts(sizes);
  PiecesWanted wanted;
  for (const int64_t size : sizes)
    for (UnevenPieces& pieces : known.flat_pieces(403, size))
      wanted.uneven.push_back(std::move(pieces));
  const WholeValue value{whole.shape, sketch_sets(whole.elements(), FloatType::float64, wanted)};
  const Tensor flat{{403}, whole.values};
  std::vector<RankValue> held;
  int64_t first = 0;
  for (const int64_t size : sizes) {
    held.push_back(part_of(flat, 0, first, size).held(static_cast<uint32_t>(held.size())));
    first += size;
  }
  const TensorPlacement found = find_placement(value, held, 1e-6);
  EXPECT_EQ(found.kind, PlacementKind::sharded);
  EXPECT_TRUE(found.dims.empty());
  EXPECT_EQ(found.omitted, 0u);
  held[2] = part_of(flat, 0, 299, 103).held(2);
  EXPECT_EQ(find_placement(value, held, 1e-6).kind, PlacementKind::unknown);
  held.pop_back();
  EXPECT_EQ(find_placement(value, held, 1e-6).omitted, 1u);
}

// The pad of a rank may be anything, if its sketch without it is there; its rows may not.
TEST(UnevenPlacement, APadMayBeAnything) {
  UnevenMaker maker(10);
  const Tensor whole = maker.tensor({103, 8});
  UnevenCuts known;
  known.add_padded(103, 26);
  PiecesWanted wanted;
  wanted.uneven = known.pieces({103, 8}, {26, 8}, 4, {});
  const WholeValue value{whole.shape, sketch_sets(whole.elements(), FloatType::float64, wanted)};
  std::vector<RankValue> held;
  for (uint32_t r = 0; r < 4; ++r) {
    Tensor part = part_of(whole, 0, 26 * r, r == 3 ? 25 : 26);
    if (r == 3) part = joined(part, maker.tensor({1, 8}), 0);
    held.push_back(part.held(r));
    PiecesWanted without;
    without.unpadded = {{0, 25}};
    const std::vector<SketchSet> sets = sketch_sets(part.elements(), FloatType::float64, without);
    held.back().unpadded = {sets.at(1).sketches.at(0).sums};
  }
  EXPECT_EQ(find_placement(value, held, 1e-6).kind, PlacementKind::sharded);
  EXPECT_TRUE(find_placement(value, held, 1e-6).stray.empty());
  // A rank in the middle has no pad.
  std::swap(held[1].sketch, held[3].sketch);
  EXPECT_NE(
      find_placement(value, held, 1e-6).omitted + find_placement(value, held, 1e-6).stray.size(),
      0u);
  std::swap(held[1].sketch, held[3].sketch);
  held[3].unpadded.clear();
  EXPECT_EQ(find_placement(value, held, 1e-6).kind, PlacementKind::unknown);
}

}  // namespace
}  // namespace opguard
