// What `instrument --verify` found, as its report on the terminal.
//
//   equal: losses, gradients and parameters are bit-equal
//                   bare  instrumented
//     graphs        3     3
//     log           41 probes, 1,204 events, 0 records lost, 0 faults
//
//   different: the loss differs
//     step 0, micro-batch 0, rank 0
//       bare          float32[] 9c1f...
//       instrumented  float32[] 4e02...
//
// Where two runs without probes differ, the program itself is not deterministic, and that is said.
// Counterexample: to blame the probes for it. Only a difference that no bare run shows is theirs.
#include <string>

#include "record/log_words.h"
#include "report/verification.h"
#include "support/text.h"

namespace opguard {
namespace {

std::string place(const Site& site) {
  return site.file + ":" + std::to_string(site.line) + ":" + std::to_string(site.column + 1);
}

std::string described(const SourceSet& sources, const Wrap& wrap) {
  return place(wrap.site) + "  " + site_text(sources, wrap.site) + "  (" + wrap.boundary + ")";
}

std::string where(const ValueDifference& d) {
  std::string text = "step " + std::to_string(d.step) + ", micro-batch " +
                     std::to_string(d.micro_batch) + ", rank " + std::to_string(d.rank);
  if (!d.name.empty()) text += ", " + d.name;
  return text;
}

std::string difference_text(const ValueDifference& d, const char* name_a, const char* name_b) {
  std::string text = "  " + where(d) + "\n";
  if (d.place.line > 0) text += "  at " + d.place.file + ":" + std::to_string(d.place.line) + "\n";
  return text + "    " + name_a + "  " + side_text(d, d.a) + "\n    " + name_b + "  " +
         side_text(d, d.b) + "\n";
}

std::string count_text(const std::optional<uint64_t>& count) {
  return count ? std::to_string(*count) : "-";
}

std::string culprit_text(const Verification& found, const SourceSet& sources,
                         const std::vector<Wrap>& wraps) {
  const Culprit& culprit = *found.culprit;
  if (!culprit.found)
    return "  the probe that does it is one of " +
           std::to_string(culprit.last - culprit.first + 1) + ", between\n    " +
           described(sources, wraps[culprit.first]) + "\n    " +
           described(sources, wraps[culprit.last]) + "\n";
  std::string text =
      "  the probe that does it\n    " + described(sources, wraps[culprit.wrap]) + "\n";
  text += culprit.alone ? "    by itself" : "    only together with probes of operators before it";
  return text + (culprit.only ? "; without it nothing changes\n"
                              : "; other probes after it change something as well\n");
}

}  // namespace

const char* value_kind_name(ValueKind kind) {
  switch (kind) {
    case ValueKind::loss:
      return "loss";
    case ValueKind::gradient:
      return "gradient";
    case ValueKind::parameter:
      return "parameter";
    case ValueKind::optimizer_state:
      return "optimizer state";
    case ValueKind::hyperparameters:
      return "hyperparameters";
    case ValueKind::moments:
      return "number of model values";
  }
  return "";
}

// Of the moment that has no partner: what the run did then. Of a number of moments: how many it
// has. Of a tensor: its shape and its fingerprint.
std::string side_text(const ValueDifference& difference, const ValueSide& side) {
  if (difference.kind == ValueKind::hyperparameters) return side.hyperparameters;
  if (side.moment)
    return *side.moment == EventKind::optimizer ? "an optimizer step" : "a backward pass";
  if (difference.kind == ValueKind::moments)
    return std::to_string(side.moments) + " backward passes and optimizer steps";
  if (!side.meta) return "nothing";
  return (side.name == difference.name ? "" : side.name + " ") + shape_text(*side.meta) + " " +
         fingerprint_text(side.value);
}

std::string words(const Judgement& judgement) {
  switch (judgement.change) {
    case Change::none:
      return "losses, gradients and parameters are bit-equal";
    case Change::fails:
      return "the instrumented program fails";
    case Change::values:
      return std::string("the ") + value_kind_name(judgement.values.first->kind) + " differs";
    case Change::compile:
      return "torch.compile makes other graphs";
  }
  return "";
}

std::string words(const Verification& found) {
  // In this order: a program that differs from itself says nothing of probes, nor does one that is
  // unsteady under them.
  if (found.noisy())
    return "the program itself is not deterministic: between two runs without probes " +
           (found.repeated->change == Change::fails ? "one fails" : words(*found.repeated));
  if (found.unsteady())
    return "the program does not do the same each time, and may not without probes either: of two "
           "instrumented runs " +
           (found.instrumented.change == Change::fails ||
                    found.instrumented_again->change == Change::fails
                ? "only one fails"
                : "the second does not repeat that " + words(found.instrumented));
  if (found.instrumented.change == Change::none && !found.instrumented.values.compared())
    return "the program has no backward pass and no optimizer step to compare";
  return words(found.instrumented);
}

const char* verdict_name(Verification::Verdict verdict) {
  switch (verdict) {
    case Verification::Verdict::equal:
      return "equal";
    case Verification::Verdict::different:
      return "different";
    case Verification::Verdict::inconclusive:
      return "inconclusive";
  }
  return "";
}

// "torch.cat(" + " ..." of an expression of several lines. The callee where the sources are not
// those that ran.
std::string site_text(const SourceSet& sources, const Site& site) {
  const SourceFile* file = sources.find(site.package, site.file);
  if (!file || site.end > file->text.size()) return site.callee;
  std::string text = file->text.substr(site.start, site.end - site.start);
  size_t line_end = text.find('\n');
  return line_end == std::string::npos ? text : text.substr(0, line_end) + " ...";
}

std::string verification_text(const Verification& found, const SourceSet& sources,
                              const std::vector<Wrap>& wraps) {
  std::string text = std::string(verdict_name(found.verdict)) + ": " + words(found) + "\n";
  const Judgement& probed = found.instrumented;
  if (found.noisy()) {
    if (found.repeated->values.first)
      text += difference_text(*found.repeated->values.first, "bare        ", "bare again  ");
  } else if (found.verdict == Verification::Verdict::different || found.unsteady()) {
    if (probed.change == Change::fails) text += "  it ends with " + probed.failure + "\n";
    if (probed.values.first)
      text += difference_text(*probed.values.first, "bare          ", "instrumented  ");
    if (probed.change == Change::values && probed.counts.graphs.value_or(0) > 0)
      text +=
          "  compiled      Inductor makes other kernels under probes; a difference in last bits "
          "may be theirs\n";
  }
  if (found.culprit) text += culprit_text(found, sources, wraps);
  const ValueComparison& values = probed.values;
  text += "  equal         " + counted(values.steps, "step") + ": " +
          std::to_string(values.losses) + " losses, " + counted(values.gradients, "gradient") +
          ", " + counted(values.parameters, "parameter") + ", " +
          counted(values.states, "optimizer state") + "\n";
  if (values.unreadable > 0)
    text += "  not readable  " + counted(values.unreadable, "value") + "\n";
  text += "                bare  instrumented\n";
  const std::pair<const char*, std::optional<uint64_t> CompileCounts::*> rows[] = {
      {"graphs      ", &CompileCounts::graphs},
      {"graph breaks", &CompileCounts::graph_breaks},
      {"recompiles  ", &CompileCounts::recompiles}};
  for (const auto& [name, member] : rows) {
    std::string bare = count_text(found.bare.*member);
    text += "  " + std::string(name) + "  " + bare +
            std::string(bare.size() < 6 ? 6 - bare.size() : 1, ' ') +
            count_text(probed.counts.*member) + "\n";
  }
  const LogLoss& log = found.log;
  text += "  log           " + counted(found.boundaries, "probe") + ", " +
          counted(log.events, "event") + ", " + std::to_string(log.lost) + " records lost, " +
          counted(log.faults, "fault") + "\n";
  if (log.unclosed > 0) text += "  cut short     " + counted(log.unclosed, "log") + "\n";
  for (const std::string& unprobed : log.unprobed) text += "  not probed    " + unprobed + "\n";
  return text;
}

}  // namespace opguard
