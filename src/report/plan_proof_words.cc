#include "report/plan_proof_words.h"

#include <algorithm>
#include <cstdio>

#include "support/text.h"

namespace opguard {
namespace {

// "aten.mm.default" -> "mm"
std::string short_name(const std::string& op) {
  const size_t dot = op.find('.');
  if (dot == std::string::npos) return op;
  return op.substr(dot + 1, op.find('.', dot + 1) - dot - 1);
}

}  // namespace

const char* proof_verdict(proving::Verdict verdict) {
  switch (verdict) {
    case proving::Verdict::proved:
      return "proved";
    case proving::Verdict::refuted:
      return "refuted";
    case proving::Verdict::unknown:
      break;
  }
  return "unknown";
}

std::string proof_headline(const proving::Result& result) {
  if (result.verdict == proving::Verdict::proved)
    return "the plan computes what its model computes, over the reals";
  if (!result.difference) return result.why;
  const proving::Difference& d = *result.difference;
  return d.output + " of rank " + std::to_string(d.rank) + " is not the model's";
}

std::string proof_extent(const proving::Result& result) {
  const proving::Difference& d = *result.difference;
  std::string text = std::to_string(d.differing) + " of " + counted(d.elements, "element") +
                     (d.differing == 1 ? " differs" : " differ");
  if (!result.other_outputs.empty())
    text += ", and " + counted(result.other_outputs.size(), "other output");
  return text;
}

std::string proof_size(const proving::Captured& captured, const proving::Result& result) {
  std::string text = counted(captured.world, "rank") + ", " +
                     counted(result.plan_operators, "operator") + " for the model's " +
                     std::to_string(result.logical_operators);
  if (result.elements > 0)
    text += "; " + counted(result.elements, "element") + " of " + counted(result.outputs, "output");
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "; %.1f s", result.seconds);
  return text + seconds;
}

std::vector<std::string> proof_assumptions(const proving::Result& result) {
  std::vector<std::string> found = {
      "operators and collectives mean what docs/formats/prove.md says",
      "arithmetic is exact: rounding and casts are left out",
      "no denominator is zero; roots and logarithms are of positive numbers",
      "a float that is the rounding of a short fraction is that fraction",
      "tokens are below their size",
      result.full
          ? "what holds at these dims holds at the full ones, where the program is the same "
            "in the ranks that were looked at"
          : "what holds at these dims holds at larger ones",
  };
  // Behind what is assumed of every proof and before what is said of dims.
  if (result.orders)
    found.insert(found.begin() + 5, "no two values that are put in order are equal");
  if (!result.relies_on_sends.empty())
    found.push_back("a send does not wait for its receiver; else these would for ever: " +
                    proving::places_of(result.relies_on_sends));
  // `hides`: something may be hidden where a dimension has one element, and the user has granted
  // that nothing is.
  std::string granted, moved;
  for (const proving::ThinInput& thin : result.thin) {
    std::string& text = thin.hides ? granted : moved;
    text += (text.empty() ? "" : ", ") + proving::thin_text(thin);
  }
  if (!moved.empty())
    found.push_back("more are moved as one is, where there is one element: along " + moved);
  if (!granted.empty())
    found.push_back(
        "granted by --accept-extent-1: nothing hides where there is one element, along " + granted);
  if (result.decided_by_solver > 0)
    found.push_back("Z3 " + result.solver + " is right about " +
                    counted(result.decided_by_solver, "element") + ", which it decided");
  for (const std::string& line : proof_grants(result)) found.push_back(line);
  return found;
}

std::vector<std::string> proof_grants(const proving::Result& result) {
  std::vector<std::string> found;
  for (const std::string& name : result.opaque)
    found.push_back("granted by --opaque: " + name +
                    " is a function of its whole inputs, the same wherever they are");
  for (const std::string& name : result.dropped)
    found.push_back("granted by --approx: " + name + " is not compared");
  return found;
}

std::string proof_full(const proving::Result& result) {
  if (!result.full || !result.full->difference.empty()) return "";
  const proving::FullComparison& full = *result.full;
  std::string text = "the same program at full dims: " + counted(full.looked_at, "rank") + " of " +
                     std::to_string(full.world) + " looked at, " +
                     counted(full.operators, "operator");
  // One block is told, the longest.
  const auto longest =
      std::max_element(full.repeated.begin(), full.repeated.end(),
                       [](const auto& a, const auto& b) { return a.operators < b.operators; });
  if (longest == full.repeated.end()) return text;
  return text + "; a block of " + counted(longest->operators, "operator") + " runs " +
         std::to_string(longest->full) + " times for " + std::to_string(longest->reduced);
}

std::string proof_operator(const proving::Statement& s) {
  const std::string rank = ", rank " + std::to_string(s.rank);
  // Neither is an operator of torch: there is nothing for short_name() to cut.
  if (s.op == "constant") return "a constant made before the step" + rank;
  if (s.op == "passed") return "a backward that handed it on as it was" + rank;
  return short_name(s.op) + (s.backward ? " of the backward pass" : "") + rank;
}

std::vector<std::string> proof_callers(const proving::Statement& s) {
  const auto installed = [](const std::string& file) {
    return file.find("/site-packages/") != std::string::npos ||
           file.find("/dist-packages/") != std::string::npos;
  };
  std::vector<std::string> found;
  // `own`: a line outside of packages has been told. Until one is, callers beyond the second are
  // looked at for it.
  bool own = !installed(s.file);
  for (const proving::Frame& f : s.callers) {
    if (found.size() >= 2 && (own || installed(f.file))) continue;
    own = own || !installed(f.file);
    found.push_back(f.file.substr(f.file.rfind('/') + 1) + ":" + std::to_string(f.line) + ", in " +
                    f.function);
  }
  return found;
}

Location proof_location(const proving::Statement& s, const std::string& tree) {
  Location at;
  at.path = s.file;
  at.file =
      !tree.empty() && s.file.starts_with(tree + "/") ? s.file.substr(tree.size() + 1) : s.file;
  at.line = static_cast<uint32_t>(s.line);
  at.function = s.function;
  return at;
}

std::string proof_position(const std::vector<int64_t>& position) {
  std::string text = "[";
  for (size_t i = 0; i < position.size(); ++i)
    text += (i ? ", " : "") + std::to_string(position[i]);
  return text + "]";
}

std::string proof_number(double x) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.6g", x);
  return text;
}

bool passed_elsewhere(const proving::Difference& d) {
  return d.passed && d.made && (d.passed->line != d.made->line || d.passed->file != d.made->file);
}

bool used_elsewhere(const proving::Difference& d) {
  const auto apart = [&](const std::optional<proving::Statement>& s) {
    return s && (d.used->line != s->line || d.used->file != s->file);
  };
  return d.used && apart(d.made) && apart(d.passed);
}

}  // namespace opguard
