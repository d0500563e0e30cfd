// Growths are logarithms, so that products of dims are sums of steps: 32 -> 16384 is a step of log
// 512. All sums of up to kFactors steps, each up or down, are made at once. They are rounded to
// 1e-7 to meet each other again.
//
// A node becomes a list of numbers in a fixed order: its arguments' and its first result's. The
// list of a node at reduced dims and that of its counterpart at full dims are compared entry by
// entry.
#include "prove/proportions.h"

#include <algorithm>
#include <cmath>

namespace opguard::proving {
namespace {

using nlohmann::json;

constexpr double kSame = 1e-6;  // of logarithms, and of numbers relatively
constexpr int kFactors = 5;     // dims in a product, above and below the line

struct Entry {
  double value;
  bool beside;  // it may be one beside a size: a length, an index
};
using Numbers = std::vector<Entry>;

void collect_tensor(const Tensor& t, Numbers& into) {
  into.push_back({static_cast<double>(t.offset), true});
  for (int64_t x : t.shape) into.push_back({static_cast<double>(x), true});
  for (int64_t x : t.strides) into.push_back({static_cast<double>(x), true});
}

// A group is how large it is, where the rank stands in it, and how far its ranks are apart.
void collect_group(const json& group, uint32_t rank, Numbers& into) {
  const auto ranks = group.get<std::vector<int64_t>>();
  into.push_back({static_cast<double>(ranks.size()), false});
  const auto own = std::find(ranks.begin(), ranks.end(), rank) - ranks.begin();
  into.push_back({static_cast<double>(own), true});
  const int64_t apart = ranks.size() > 1 ? ranks[1] - ranks[0] : 0;
  bool even = true;
  for (size_t i = 1; i < ranks.size(); ++i) even = even && ranks[i] - ranks[i - 1] == apart;
  into.push_back({even ? static_cast<double>(apart) : -1, false});
}

// Of a list of tensors only the first: there may be as many as layers. Flags and texts are compared
// elsewhere, as kinds (full_dims.cc).
void collect_numbers(const json& argument, uint32_t rank, bool beside, Numbers& into) {
  if (is_tensor(argument)) {
    collect_tensor(tensor_of(argument), into);
  } else if (argument.is_number()) {
    into.push_back({argument.get<double>(), beside});
  } else if (argument.is_array()) {
    const bool tensors = !argument.empty() && is_tensor(argument[0]);
    for (const json& entry : argument) {
      collect_numbers(entry, rank, true, into);
      if (tensors) break;
    }
  } else if (argument.is_object() && argument.contains("group")) {
    collect_group(argument["group"], rank, into);
  }
}

bool is_message(const Node& node) {
  return node.op.starts_with("c10d.send") || node.op.starts_with("c10d.recv");
}

Numbers sizes_in(const Node& node, uint32_t rank) {
  Numbers found;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    // The other rank of a message is as far away.
    if (is_message(node) && i == 2 && node.arguments[i].is_number())
      found.push_back({node.arguments[i].get<double>() - rank, false});
    else
      collect_numbers(node.arguments[i], rank, node.view, found);
  }
  for (const json& value : node.keywords) collect_numbers(value, rank, node.view, found);
  found.push_back({static_cast<double>(node.results.size()), false});
  if (!node.results.empty()) collect_tensor(node.results.front(), found);
  return found;
}

bool close(double a, double b) {
  return a == b || std::fabs(a - b) <= kSame * std::max(std::fabs(a), std::fabs(b));
}

}  // namespace

Proportions::Proportions(const Dims& reduced, const Dims& full, uint32_t small_rank,
                         uint32_t full_rank)
    : small_rank_(small_rank), full_rank_(full_rank) {
  std::vector<double> steps;
  const auto step = [&](double small, double large) {
    if (small > 0 && large > 0 && small != large) steps.push_back(std::log(large / small));
  };
  for (const auto& [name, size] : reduced)
    if (auto at = full.find(name); at != full.end()) {
      step(static_cast<double>(size), static_cast<double>(at->second));
      // The last rank along it, from 0.
      step(static_cast<double>(size - 1), static_cast<double>(at->second - 1));
    }
  // What is cut by ranks may begin at rank * size.
  step(small_rank, full_rank);
  const auto rounded = [](double x) { return std::llround(x * 1e7); };
  // Each round adds one step, up or down, to all that was reached so far.
  std::map<int64_t, double> reached{{0, 0.0}};
  for (int round = 0; round < kFactors; ++round) {
    std::map<int64_t, double> next = reached;
    for (const auto& [key, value] : reached)
      for (double by : steps)
        for (double sign : {1.0, -1.0}) next.emplace(rounded(value + sign * by), value + sign * by);
    reached = std::move(next);
  }
  for (const auto& [key, value] : reached) growths_.push_back(value);
}

bool Proportions::grew(double small, double full) const {
  if (small == 0 || full == 0) return small == full;
  if ((small < 0) != (full < 0)) return false;
  const auto reached = [&](double growth) {
    const auto at = std::lower_bound(growths_.begin(), growths_.end(), growth - kSame);
    return at != growths_.end() && *at <= growth + kSame;
  };
  const double growth = std::log(full / small);
  return reached(growth) || reached(2 * growth);  // a root of a size: 1 / sqrt(8)
}

//   follows(31, 16383, true)     yes: 32 -> 16384, less one
//   follows(7, 7, false)         yes: it is the same number
bool Proportions::follows(double small, double full, bool beside) const {
  if (close(small, full) || grew(small, full)) return true;
  if (!beside) return false;
  return grew(small + 1, full + 1) || grew(small - 1, full - 1);
}

// Each node at reduced dims beside the one in its place at full dims. A last repetition is compared
// with the last: the third of 4 layers with the third, the fourth with the 126th.
std::string Proportions::difference(const Trace& small, const Folded& folded_small,
                                    const Trace& full, const Folded& folded_full) const {
  // Repetitions are compared from the first on, and the last with the last.
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, size_t> by_place;
  for (size_t i = 0; i < folded_full.nodes.size(); ++i)
    by_place[{folded_full.nodes[i].leaf, folded_full.nodes[i].at}] = i;
  std::vector<std::vector<uint32_t>> repeats(folded_full.labels.size());
  for (const FoldedNode& node : folded_full.nodes) repeats[node.leaf] = node.of;
  for (size_t i = 0; i < folded_small.nodes.size(); ++i) {
    const FoldedNode& here = folded_small.nodes[i];
    std::vector<uint32_t> at = here.at;
    for (size_t d = 0; d < at.size(); ++d)
      if (at[d] + 1 == here.of[d]) at[d] = repeats[here.leaf][d] - 1;
    const auto there = by_place.find({here.leaf, at});
    if (there == by_place.end()) continue;
    const Node &x = small.nodes[i], &y = full.nodes[there->second];
    const Numbers a = sizes_in(x, small_rank_), b = sizes_in(y, full_rank_);
    for (size_t n = 0; n < a.size() && n < b.size(); ++n) {
      if (follows(a[n].value, b[n].value, a[n].beside)) continue;
      return "a number of " + x.op + " at " + line_text(small, x) + " is " +
             json(a[n].value).dump() + " at reduced dims and " + json(b[n].value).dump() +
             " at full ones: no product of dims grew so";
    }
    if (a.size() != b.size())
      return x.op + " has another number of arguments at full dims, " + std::to_string(b.size()) +
             " for " + std::to_string(a.size());
  }
  return uneven(folded_small, full, folded_full);
}

// Repetitions that the reduced trace does not have. Each of their numbers is the first one's or the
// last one's, or as far between the two as the repetition is.
std::string Proportions::uneven(const Folded& folded_small, const Trace& full,
                                const Folded& folded) const {
  std::vector<std::vector<uint32_t>> repeats(folded_small.labels.size());
  for (const FoldedNode& node : folded_small.nodes) repeats[node.leaf] = node.of;
  std::map<std::pair<uint32_t, std::vector<uint32_t>>, size_t> by_place;
  for (size_t i = 0; i < folded.nodes.size(); ++i)
    by_place[{folded.nodes[i].leaf, folded.nodes[i].at}] = i;
  for (size_t i = 0; i < folded.nodes.size(); ++i) {
    const FoldedNode& here = folded.nodes[i];
    for (size_t d = 0; d < here.at.size(); ++d) {
      const uint32_t k = here.at[d], end = here.of[d] - 1;
      // In a block that runs as often at reduced dims each has been compared with its own.
      if (k == 0 || k == end || here.of[d] == repeats[here.leaf][d]) continue;
      std::vector<uint32_t> at = here.at;
      at[d] = 0;
      const size_t first = by_place.at({here.leaf, at});
      at[d] = end;
      const size_t last = by_place.at({here.leaf, at});
      const Numbers own = sizes_in(full.nodes[i], full_rank_),
                    low = sizes_in(full.nodes[first], full_rank_),
                    high = sizes_in(full.nodes[last], full_rank_);
      for (size_t n = 0; n < own.size() && n < low.size() && n < high.size(); ++n) {
        const double x = own[n].value, y = low[n].value, z = high[n].value;
        if (close(x, y) || close(x, z) || close(x, y + (z - y) * k / end)) continue;
        return "a number of " + full.nodes[i].op + " at " + line_text(full, full.nodes[i]) +
               " is " + json(x).dump() + " in repetition " + std::to_string(k) + " at full dims, " +
               json(y).dump() + " in the first and " + json(z).dump() + " in the last";
      }
    }
  }
  return "";
}

}  // namespace opguard::proving
