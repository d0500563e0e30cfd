// Steps of two runs that are the same under other numbers, as sentences.
//
//   b resumes at a's step 3    "step 0 of run b is step 3 of run a and so on; run a makes 3 steps
//                              besides (0 to 2)"
//   a window of both logs      "compared are steps 5 to 8 of run a with the same ones of run b, 4
//                              steps in all"
//
// A stretch is {a, b, count}: so many steps from a's and from b's number on. The last one of an
// open pairing has count kNone, to the end.
//
// Counterexample: a sentence for each rank. Ranks that are paired alike have one.
#include "report/step_text.h"

#include <algorithm>

#include "support/text.h"

namespace opguard {
namespace {

uint32_t begin(int side, const StepStretch& stretch) { return side == 0 ? stretch.a : stretch.b; }

// "steps 0 to 2", "step 3"
std::string range(uint32_t first, uint32_t count) {
  const std::string from = std::to_string(first);
  if (count == 1) return "step " + from;
  return "steps " + from + " to " + std::to_string(first + count - 1);
}

// Steps of one side between the stretches: "; run a makes 3 steps besides (0 to 2)". What is behind
// the last stretch is not told: an open one has no end.
std::string besides(int side, const std::vector<StepStretch>& stretches) {
  uint32_t end = 0, count = 0;
  std::string ranges;
  for (const StepStretch& stretch : stretches) {
    const uint32_t first = begin(side, stretch), own = first - end;
    if (own > 0) {
      ranges += (ranges.empty() ? "" : ", ") + std::to_string(end);
      if (own > 1) ranges += " to " + std::to_string(first - 1);
    }
    count += own;
    end = first + stretch.count;
  }
  if (count == 0) return "";
  return std::string("; run ") + "ab"[side] + " makes " + counted(count, "step") + " besides (" +
         ranges + ")";
}

// "compared are steps 100 to 103 of run a with the same ones of run b, 4 steps in all". The first
// four stretches are named, all are counted.
std::string compared(const std::vector<StepStretch>& stretches) {
  constexpr size_t kShown = 4;
  uint32_t count = 0;
  std::string ranges[2];
  for (size_t i = 0; i < stretches.size(); ++i) {
    count += stretches[i].count;
    if (i > kShown) continue;
    for (int side : {0, 1})
      ranges[side] += (i == 0 ? "" : ", ") +
                      (i == kShown ? "..." : range(begin(side, stretches[i]), stretches[i].count));
  }
  const std::string of_b = ranges[0] == ranges[1] ? "the same ones" : ranges[1];
  return "compared are " + ranges[0] + " of run a with " + of_b + " of run b, " +
         counted(count, "step") + " in all";
}

}  // namespace

std::vector<const ProcessPair*> paired_otherwise(const Alignment& alignment) {
  std::vector<const ProcessPair*> found;
  for (const ProcessPair& both : alignment.processes)
    if (!both.steps.by_number() &&
        std::none_of(found.begin(), found.end(),
                     [&](const ProcessPair* known) { return known->steps == both.steps; }))
      found.push_back(&both);
  return found;
}

std::vector<std::string> step_sentences(const Alignment& alignment) {
  std::vector<std::string> sentences;
  for (const ProcessPair* both : paired_otherwise(alignment)) {
    std::string text;
    const std::vector<StepStretch>& stretches = both->steps.stretches();
    if (both->steps.windowed()) {
      sentences.push_back(compared(stretches));
      continue;
    }
    for (const StepStretch& s : stretches) {
      const bool last = s.count == kNone;
      text += (text.empty() ? "" : ", ") +
              (last ? "step " + std::to_string(s.b) : range(s.b, s.count)) + " of run b " +
              (last || s.count == 1 ? "is " : "are ") +
              (last ? "step " + std::to_string(s.a) : range(s.a, s.count)) + " of run a" +
              (last ? " and so on" : "");
    }
    for (int side : {0, 1}) text += besides(side, stretches);
    sentences.push_back(std::move(text));
  }
  return sentences;
}

}  // namespace opguard
