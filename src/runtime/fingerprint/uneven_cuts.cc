// Every way to see the ranks of a list as groups is tried: sizes of a group, and steps between its
// ranks. A group whose sizes add up to the dimension says where its pieces begin.
//
//   list 52 51 52 51, whole 103
//     2 ranks, step 1    52 + 51       52 begins at 0, 51 at 52
//     2 ranks, step 2    52 + 52       104: tells nothing
//     4 ranks, step 1    206           tells nothing
//
// What is found for a size of a dimension is kept, until another list or pad comes.
#include "runtime/fingerprint/uneven_cuts.h"

#include <algorithm>
#include <cstddef>

namespace opguard {
namespace {

using Sizes = std::vector<int64_t>;

// Pieces of one shape, for each rank.
constexpr int64_t kMostPieces = 4;

// If the sizes of these ranks add up to the whole, each begins where the one before ends.
template <typename Rank>
void add_starts(const Sizes& sizes, int64_t whole, size_t ranks, Rank rank,
                std::map<int64_t, std::set<int64_t>>& starts) {
  int64_t sum = 0;
  for (size_t i = 0; i < ranks && sum <= whole; ++i) sum += sizes[rank(i)];
  if (sum != whole) return;
  sum = 0;
  for (size_t i = 0; i < ranks; ++i) {
    const int64_t size = sizes[rank(i)];
    if (size > 0) starts[size].insert(sum);
    sum += size;
  }
}

// Of the groups of `ranks` ranks, each `step` from the next; and of these that have the inner of
// two dimensions of a mesh first.
void add_groups(const Sizes& sizes, int64_t whole, size_t ranks, size_t step,
                std::map<int64_t, std::set<int64_t>>& starts) {
  for (size_t block = 0; block + ranks * step <= sizes.size(); block += ranks * step)
    for (size_t first = block; first < block + step; ++first) {
      add_starts(sizes, whole, ranks, [&](size_t i) { return first + i * step; }, starts);
      for (size_t inner = 2; inner * 2 <= ranks; ++inner)
        if (ranks % inner == 0)
          add_starts(
              sizes, whole, ranks,
              [&](size_t i) {
                const size_t of_outer = ranks / inner;
                return first + (i % of_outer * inner + i / of_outer) * step;
              },
              starts);
    }
}

}  // namespace

void UnevenCuts::add_parts(const Sizes& sizes) {
  if (parts_.insert(sizes).second) known_.clear();
}

void UnevenCuts::add_padded(int64_t whole, int64_t local) {
  if (whole > 0 && local > 0 && whole != local && padded_.emplace(whole, local).second)
    known_.clear();
}

const UnevenCuts::Starts& UnevenCuts::starts_of(int64_t whole) {
  const auto [it, fresh] = known_.try_emplace(whole);
  Starts& starts = it->second;
  if (!fresh) return starts;
  for (const Sizes& sizes : parts_)
    for (size_t ranks = 2; ranks <= sizes.size(); ++ranks) {
      if (sizes.size() % ranks != 0) continue;
      for (size_t step = 1; ranks * step <= sizes.size(); ++step)
        if (sizes.size() / ranks % step == 0) add_groups(sizes, whole, ranks, step, starts);
    }
  for (const auto& [padded, local] : padded_)
    for (int64_t start = 0; padded == whole && start < whole; start += local)
      starts[local].insert(start);
  return starts;
}

std::vector<UnevenPieces> UnevenCuts::flat_pieces(int64_t count, int64_t local) {
  const Starts& known = starts_of(count);
  const auto own = known.find(local);
  if (own == known.end()) return {};
  return {{{local}, 0, {{own->second.begin(), own->second.end()}}}};
}

// False where all is as even cuts have it, or there would be more than 4 pieces a rank.
bool UnevenCuts::add_pieces(const Sizes& whole, const Sizes& local, int64_t world,
                            UnevenPieces& found) {
  bool uneven = false;
  int64_t cells = 1;
  for (size_t d = 0; d < whole.size(); ++d) {
    std::set<int64_t> starts;
    if (local[d] == whole[d]) {
      starts.insert(0);
    } else if (local[d] > 0) {
      if (whole[d] % local[d] == 0 && whole[d] / local[d] <= world)
        for (int64_t start = 0; start < whole[d]; start += local[d]) starts.insert(start);
      const Starts& known = starts_of(whole[d]);
      if (const auto own = known.find(local[d]); own != known.end()) {
        const size_t even = starts.size();
        starts.insert(own->second.begin(), own->second.end());
        uneven |= starts.size() > even;
      }
    }
    cells *= static_cast<int64_t>(starts.size());
    if (cells == 0 || cells > kMostPieces * world) return false;
    found.starts.emplace_back(starts.begin(), starts.end());
  }
  return uneven;
}

std::vector<UnevenPieces> UnevenCuts::pieces(const Sizes& whole, const Sizes& local, int64_t world,
                                             const Sizes& outer) {
  std::vector<UnevenPieces> all;
  if (empty() || whole.empty() || whole.size() != local.size() || whole == local) return all;
  UnevenPieces own{local, 0, {}};
  if (add_pieces(whole, local, world, own)) all.push_back(std::move(own));
  for (const int64_t size : outer) {
    if (size < 2 || size > UINT8_MAX || whole[0] % size != 0 || local[0] % size != 0) continue;
    Sizes unfolded = whole, piece = local;
    unfolded[0] /= size, piece[0] /= size;
    unfolded.insert(unfolded.begin(), size);
    piece.insert(piece.begin(), size);
    UnevenPieces folded{local, static_cast<uint8_t>(size), {}};
    if (unfolded[1] != piece[1] && add_pieces(unfolded, piece, world, folded))
      all.push_back(std::move(folded));
  }
  return all;
}

}  // namespace opguard
