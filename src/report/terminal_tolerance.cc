// A comparison within rounding, for people: what the ranks hold, how far they are off, what belongs
// together.
//
//   what the ranks of b hold of a's tensors
//     forward  gradients  parameters
//          48         48          12  replicated
//          24         12          24  sharded along 0
//     1 tensor beyond what is allowed
//   the largest errors, as multiples of a's own rounding
//     3.1  2.4e-07  layers.0.attention out0
//   layers and micro-batches of b
//     rank 1: layers.0 is layers.2
//
// Counterexample: an error by itself. 1e-6 is much of a sum of four and little of one of a million.
// So an error is told as a multiple of what a's own rounding moves.
//
// The cost: one pass over the tensors for the table; the worst five by a partial sort.
#include "report/terminal_tolerance.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "align/tolerance/judge_tolerance.h"
#include "align/tolerance/noise_level.h"
#include "report/isolation_text.h"
#include "report/tolerance_text.h"
#include "support/text.h"

namespace opguard {
namespace {

constexpr size_t kWorstShown = 5;
constexpr size_t kPlacementsShown = 12;

// "placement   forward   gradients   parameters": how many tensors of each.
void print_placements(TerminalLines& out, const Comparison& comparison) {
  std::map<std::string, std::array<uint64_t, 3>> counts;
  // Rows are words: a tensor declared otherwise than others of its placement has a row of its own.
  const std::map<uint32_t, const DeclaredTensor*> declared = declared_by_tensor(comparison);
  uint64_t beyond = 0, unjudged = 0;
  for (uint32_t number = 0; number < comparison.tensors.size(); ++number) {
    const ComparedTensor& tensor = comparison.tensors[number];
    if (tensor.state == TensorState::unjudged) {
      ++unjudged;
      continue;
    }
    if (tensor.state == TensorState::beyond) {
      ++beyond;
      continue;
    }
    const bool gradient = !comparison.texts.text(tensor.a.node).empty() ||
                          comparison.texts.text(tensor.a.activity.boundary) == "<gradients>";
    const bool parameter = comparison.texts.text(tensor.a.activity.boundary) == "<parameters>";
    const auto said = declared.find(number);
    ++counts[placement_text(tensor.placement) +
             (said == declared.end() ? "" : "; declared " + placements_of(said->second->text))]
            [parameter  ? 2
             : gradient ? 1
                        : 0];
  }
  out.line("");
  out.line(out.paint("1", "what the ranks of b hold of a's tensors"));
  out.line("  forward  gradients  parameters");
  std::vector<std::pair<std::string, std::array<uint64_t, 3>>> rows(counts.begin(), counts.end());
  // The most frequent first; equal ones stay by their words.
  std::stable_sort(rows.begin(), rows.end(), [](const auto& x, const auto& y) {
    return x.second[0] + x.second[1] + x.second[2] > y.second[0] + y.second[1] + y.second[2];
  });
  for (size_t i = 0; i < std::min(rows.size(), kPlacementsShown); ++i) {
    const auto& [text, numbers] = rows[i];
    char line[64];
    std::snprintf(
        line, sizeof line, "  %7llu  %9llu  %10llu  ", static_cast<unsigned long long>(numbers[0]),
        static_cast<unsigned long long>(numbers[1]), static_cast<unsigned long long>(numbers[2]));
    out.line(line + text);
  }
  if (rows.size() > kPlacementsShown)
    out.line("  and " + counted(rows.size() - kPlacementsShown, "more placement"));
  if (beyond > 0) out.line("  " + counted(beyond, "tensor") + " beyond what is allowed");
  if (unjudged > 0)
    out.line("  " + counted(unjudged, "tensor") + " not judged: zeros, or jitter alone moves them");
  if (comparison.missing > 0)
    out.line("  " + counted(comparison.missing, "tensor") + " of a without a partner in b");
}

void print_worst(TerminalLines& out, const Comparison& comparison) {
  std::vector<const ComparedTensor*> all;
  for (const ComparedTensor& tensor : comparison.tensors)
    if (tensor.placement.error > 0 &&
        (tensor.state == TensorState::equal || tensor.state == TensorState::partial))
      all.push_back(&tensor);
  // A reference that shows no noise at all is not divided by: the sketch itself rounds.
  const auto ratio = [](const ComparedTensor& t) {
    return t.placement.error / std::max(t.noise, kSketchRounding);
  };
  const size_t shown_rows = std::min(all.size(), kWorstShown);
  std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(shown_rows), all.end(),
                    [&](const auto* x, const auto* y) { return ratio(*x) > ratio(*y); });
  if (shown_rows == 0) return;
  out.line("");
  out.line(out.paint("1", "the largest errors, as multiples of a's own rounding"));
  for (size_t i = 0; i < shown_rows; ++i)
    out.line("  " + short_number(ratio(*all[i])) + "  " + short_number(all[i]->placement.error) +
             "  " + shown(tensor_text(comparison, *all[i])));
}

// "rank 1: layers.0 is layers.2", "rank 1: micro-batch 0 of step 3 is 4".
void print_mapping(TerminalLines& out, const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const LayerPlace& place : comparison.layers)
    // Of the same number on both sides nothing need be said.
    if (place.local != place.global)
      lines.push_back("rank " + std::to_string(place.rank) + ": " + place.prefix + "." +
                      std::to_string(place.local) + " is " + place.prefix + "." +
                      std::to_string(place.global));
  std::set<std::string> batches;
  for (const MicroBatchPlace& place : comparison.micro_batches)
    if (place.local != place.global)
      batches.insert("rank " + std::to_string(place.rank) + ": micro-batch " +
                     std::to_string(place.local) + " of step " + std::to_string(place.step) +
                     " is " + std::to_string(place.global));
  if (lines.empty() && batches.empty()) return;
  out.line("");
  out.line(out.paint("1", "layers and micro-batches of b"));
  lines.insert(lines.end(), batches.begin(), batches.end());
  for (size_t i = 0; i < std::min(lines.size(), kRanksShown); ++i) out.line("  " + shown(lines[i]));
  if (lines.size() > kRanksShown)
    out.line("  and " + std::to_string(lines.size() - kRanksShown) + " more");
}

// "layers.3.wo.weight is a's model.layers.3.self_attn.o_proj.weight".
void print_port(TerminalLines& out, const PortValues& port) {
  if (!port.told) return;
  const auto of = [](uint64_t some, uint64_t all) {
    return std::to_string(some) + " of " + std::to_string(all);
  };
  out.line("");
  out.line("paired by value: " +
           of(port.parameters_equal + port.parameters_moved, port.parameters) + " parameters, " +
           of(port.results_paired, port.results) + " results of the first forward pass");
  if (port.parameters_moved > 0)
    out.line("  " + counted(port.parameters_moved, "parameter") +
             " by the elements alone: judged by the losses behind them");
  for (const auto& [mine, theirs] : port.examples())
    out.line("  b's " + shown(mine) + " is a's " + shown(theirs));
}

// Of the pivot's tensor: how far it is, and how far it may be.
void print_error(TerminalLines& out, const Comparison& comparison) {
  const auto& candidates = out.report.verdict.candidates;
  if (candidates.empty() || candidates.front().tensor == kNone) return;
  const ComparedTensor& tensor = comparison.tensors[candidates.front().tensor];
  out.line("");
  out.line(out.paint("1", "the tensor that tells"));
  out.line(
      "  " + shown(tensor_text(comparison, tensor)) + ", step " +
      std::to_string(tensor.a.activity.step) +
      (tensor.micro_batch == kNone ? "" : ", micro-batch " + std::to_string(tensor.micro_batch)));
  out.line("  error " + short_number(tensor.placement.error) + ", allowed " +
           short_number(tensor.allowed) + ", noise " + short_number(tensor.noise));
  out.line("  on b's ranks: " + placement_text(tensor.placement));
  // Where the declaration is the finding, the pivot's sentence says it.
  const auto declared = declared_by_tensor(comparison);
  const auto said = declared.find(candidates.front().tensor);
  if (said != declared.end() && candidates.front().kind != PivotKind::declared)
    out.line("  declared: " + shown(said->second->text));
}

}  // namespace

void print_tolerance(TerminalLines& out) {
  const Comparison* comparison = out.report.tolerance;
  if (comparison == nullptr) return;
  print_error(out, *comparison);
  print_port(out, comparison->port);
  print_isolation(out);
  print_placements(out, *comparison);
  print_worst(out, *comparison);
  print_mapping(out, *comparison);
}

}  // namespace opguard
