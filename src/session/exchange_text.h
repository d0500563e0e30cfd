// session/exchange_text.h: the runs of b with text of a that prove which text is the cause.
//
//   b as it is                          loss 0.48
//   b, suspects 1 to 4 as in a          loss 0.51, run a's: healed
//   b, suspects 1 and 2 as in a         loss 0.48
//   b, suspect 3 as in a                loss 0.51: the cause is its text
//
// Where both programs share the pivot's own text, no value leads to what decided it: a number, a
// flag, an object, another order. Then text is exchanged instead, the likelier half first.
//
// Counterexample: text that makes the program fail proves nothing, and its run is spent.
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
// decided that it runs. Such are a number, a flag, an object, another order. Runs b with a's text
// in the suspects; found, the pivot gets the text as its place (Pivot::text).
Exchanged exchange_text(const ExchangeText& source, const Run& a, const Run& b,
                        const Alignment& alignment, Verdict& verdict, const ExchangeBudget& budget);

// Matches the sites of b's rewritten sources with a's plan, and wraps those.
RewriteProgram rewriter(const DiffSide& b, const GuardedProgram& program, const Plan& plan_a,
                        const SourceSet& sources_b, const TemplateLibrary& templates);

}  // namespace opguard
