// invariants/score_rules.h: what good runs say to a rule that somebody wrote.
//
//   "A trained parameter whose module was called gets a gradient."
//   21 programs, 4,410 rows, 1 program breaks it: sam_gan, 12 rows
//
// A rule that more than one of twenty programs break is told, and is an error of nobody. None is
// left out in silence.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "invariants/invariant.h"
#include "invariants/pattern_table.h"

namespace opguard {

// A good program that breaks a rule.
struct GoodBreaker {
  std::string id;  // the rule's
  uint32_t program = 0;
  // That break it, not all of the program's.
  uint64_t rows = 0;
};

struct ScoredRules {
  std::vector<Invariant> rules;  // with evidence
  std::vector<GoodBreaker> breakers;
};

// A rule's evidence by these rows. `breaking`: programs in which a row breaks it.
RuleEvidence evidence_of(const Invariant& rule, const PatternTable& table, const CellTexts& texts,
                         std::span<const RuleView> views,
                         std::vector<uint32_t>* breaking = nullptr);

ScoredRules score_rules(std::vector<Invariant> written, const PatternTable& table,
                        const CellTexts& texts, std::span<const RuleView> views);

// The written ones, and the found ones that none of them says already with as few conditions.
std::vector<Invariant> join_rules(std::vector<Invariant> written,
                                  const std::vector<Invariant>& found);

}  // namespace opguard
