// session/exchange_text.h: the runs of b with text of a that prove which text is the cause.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "session/report_verdict.h"
#include "session/side.h"
#include "suspects/exchange.h"

namespace opguard {

// The program of b with other text in some of its files, by path. folder: of ours, for the texts.
using RewriteProgram = std::function<llvm::Expected<GuardedProgram>(
    const std::map<std::string, std::string>& texts, const std::string& folder)>;

// What an exchange of text needs. Empty where only logs are known.
struct ExchangeText {
  std::shared_ptr<const ProgramTexts> texts;
  FindBackgrounds backgrounds;
  RewriteProgram rewrite;
  explicit operator bool() const { return texts && backgrounds && rewrite; }
};

struct ExchangeBudget {
  uint32_t runs = 0;  // at most
  uint32_t kept = 0;  // of them, for values to be put in place, once a run has healed nothing
  bool own = false;   // ask the operator's own text alone: values were tried and prove nothing
};

struct Exchanged {
  uint32_t runs = 0;  // made
  std::optional<ProofReport> proof;
};

// Where the pivot stands in text that both programs share, something else gave it its value, or
// decided that it runs: a number, a flag, an object, another order. Runs b with a's text in the
// suspects; found, the pivot gets the text as its place (Pivot::text).
Exchanged exchange_text(const ExchangeText& source, const Run& a, const Run& b,
                        const Alignment& alignment, Verdict& verdict, const ExchangeBudget& budget);

// Matches the sites of b's rewritten sources with a's plan, and wraps those.
struct Survey;
RewriteProgram rewriter(const DiffSide& b, const GuardedProgram& program, const Survey& survey_a,
                        const Survey& survey_b, const TemplateLibrary& templates);

}  // namespace opguard
