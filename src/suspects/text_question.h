// suspects/text_question.h: whether the cause of a verdict can lie in text elsewhere, and in which.
//
//   scalar     both texts say `add(param, alpha=decay)`: something else set `decay`
//   structure  one run alone enters `if self.causal:`, which both programs have
//   value      the operator was given the same, and another text made it, set its mode, or runs
//              inside it: `next(loader)` of a loader that shuffles
//
// The answer is groups of hunks to run b with as in a, the likeliest first (exchange.h).
#pragma once

#include <optional>
#include <vector>

#include "align/judge/pivot_view.h"
#include "suspects/exchange.h"

namespace opguard {

struct TextQuestion {
  std::vector<ExchangeGroup> groups;
  // What decided the difference is no tensor's value: values put in place prove no more than the
  // operator that shows it.
  bool values_lead_nowhere = false;
};

// behind: the pivot's. None: its own text tells the cause, or no text can.
std::optional<TextQuestion> text_question(const Run& a, const Run& b, const Pivot& pivot,
                                          const ProgramTexts& texts, const Background& behind);

// The hunk in which the operator itself stands, for where no value can be put in place of its own.
// One run alone has it (text_question() asks this then), or it leaves no tensor. None: its
// statement is the same in both programs.
std::optional<TextQuestion> own_text_question(const Run& a, const Run& b, const Pivot& pivot,
                                              const ProgramTexts& texts, const Background& behind);

// One side's operator, or the call it is named at, stands in the lines of a part.
bool stands_in(const ExchangePart& part, const PivotView& pivot);

}  // namespace opguard
