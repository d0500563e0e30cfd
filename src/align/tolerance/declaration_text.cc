// The text that python/opguard/record/declared.py makes, read.
//
//   Shard(0) over 2 ranks 0-1                            one placement, a mesh of 2
//   Replicate(), Shard(1) over 2x2 ranks 0-3             one placement a dimension of the mesh
//   Shard(0) as tensor_model_parallel, partition_dim 0   by attributes, with no mesh
//
// What is shown to a reader drops the size: "Shard(0) over ranks 0-1". Behind " as " stand a
// parameter's attributes, and these are shown in place of the placements.
//
// Counterexample: "Partial(max)" is read, as a kind that nothing is compared with. "Shard(x)" is no
// such text.
//
// A log may be anybody's file. So a mesh has at most 65,536 ranks, and sizes are multiplied with a
// bound before they are compared.
#include <algorithm>
#include <charconv>
#include <utility>

#include "align/tolerance/declaration.h"

namespace opguard {
namespace {

// Of a mesh.
constexpr size_t kMostRanks = 1 << 16;

// A reader of `word`, `word(`, numbers.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  template <typename Number>
  bool take_number(Number& number) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), number);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  std::string_view take_until(char end) {
    const std::string_view taken = rest_.substr(0, rest_.find(end));
    rest_.remove_prefix(taken.size());
    return taken;
  }
  bool ended() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

// "Shard(0)", "_StridedShard(0, 2)", "Partial(sum)", "_MaskPartial()".
bool take_along(Words& words, DeclaredAlong& along) {
  const std::string_view kind = words.take_until('(');
  if (kind.empty() || !words.take("(")) return false;
  const std::string_view fields = words.take_until(')');
  if (!words.take(")")) return false;
  Words in(fields);
  if (kind == "Replicate") {
    along.kind = DeclaredKind::replicate;
  } else if (kind == "Shard") {
    along.kind = DeclaredKind::shard;
    return in.take_number(along.dim) && in.ended();
  } else if (kind == "_StridedShard") {
    along.kind = DeclaredKind::shard;
    return in.take_number(along.dim) && in.take(", ") && in.take_number(along.split) && in.ended();
  } else if (kind == "Partial" && (fields == "sum" || fields == "avg")) {
    along.kind = fields == "sum" ? DeclaredKind::partial : DeclaredKind::partial_mean;
  }
  return true;
}

// "0-2,5".
bool take_ranks(Words& words, std::vector<uint32_t>& ranks) {
  do {
    uint32_t first = 0, last = 0;
    if (!words.take_number(first)) return false;
    last = first;
    if (words.take("-") && !words.take_number(last)) return false;
    if (last < first || last - first >= kMostRanks) return false;
    for (uint32_t rank = first; rank <= last; ++rank) ranks.push_back(rank);
    if (ranks.size() > kMostRanks) return false;
  } while (words.take(","));
  return true;
}

}  // namespace

std::optional<Declaration> parse_declaration(std::string_view text) {
  Declaration read;
  Words words(text);
  do {
    if (!take_along(words, read.along.emplace_back())) return std::nullopt;
  } while (words.take(", "));
  std::string placements(text.substr(0, text.size() - words.rest().size())), over;
  if (words.take(" over ")) {
    do {
      if (!words.take_number(read.mesh.emplace_back()) || read.mesh.back() == 0)
        return std::nullopt;
    } while (words.take("x"));
    const std::string_view before = words.rest();
    if (!words.take(" ranks ") || !take_ranks(words, read.ranks)) return std::nullopt;
    over = " over" + std::string(before.substr(0, before.size() - words.rest().size()));
    uint64_t size = 1;
    for (const uint32_t n : read.mesh) size = std::min<uint64_t>(size * n, kMostRanks + 1);
    if (size != read.ranks.size() || read.mesh.size() != read.along.size()) return std::nullopt;
  }
  if (words.take(" as ")) {
    read.by_attributes = true;
    placements = words.rest();
  } else if (!words.ended()) {
    return std::nullopt;
  }
  read.text = placements + over;
  return read;
}

}  // namespace opguard
