// invariants/invariant.h: a rule of training: of all rows of a view that meet its conditions, one
// column has one value.
//
//   view parameter, requires_grad=yes, held=yes: has_grad=yes
//   "every parameter at an optimizer's step, where requires grad and held: has grad"
//
// Counterexample: "the loss falls" is no rule of this kind. A row holds categories alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "invariants/view.h"

namespace opguard {

// A column has one of these values; none of them, where it is negated.
struct CellTest {
  std::string column;
  std::vector<std::string> values;
  bool negated = false;
  bool operator==(const CellTest&) const = default;
};

// structural: written by a person. general: found in several programs, and names no program's own
// things. The tier program is of one program alone; usual is broken by one of ten or more programs.
enum class InvariantTier : uint8_t { structural, general, program, usual };
// note: it is told, and breaks nothing.
enum class InvariantSeverity : uint8_t { error, warning, note };

const char* tier_name(InvariantTier tier);
const char* severity_name(InvariantSeverity severity);

// What a rule rests on.
struct RuleEvidence {
  // That keep it; of a written rule, that have a row of it.
  uint32_t programs = 0, runs = 0;
  uint64_t rows = 0;
  uint64_t against = 0;   // rows with another value outside its conditions
  uint32_t breaking = 0;  // good programs that break it: of rules that were written, or are usual
  // Programs, runs in tier program, that it was not made from or would be found without.
  uint32_t held_out = 0;
  bool operator==(const RuleEvidence&) const = default;
};

struct Invariant {
  std::string id{};    // of view, conditions and conclusion: the same everywhere
  std::string says{};  // a sentence
  // By name, since files outlive numbers.
  std::string view{};
  // All of them must be met; none: every row.
  std::vector<CellTest> when{};
  CellTest then{};
  // Instead of `then`: the row's number lies within.
  std::optional<std::pair<double, double>> between{};
  InvariantTier tier = InvariantTier::structural;
  InvariantSeverity severity = InvariantSeverity::warning;
  std::string relation{};  // of the column: "coverage", "rank_equal"
  RuleEvidence evidence{};
  std::string muted{};  // why; "" where it counts
  bool operator==(const Invariant&) const = default;
};

// Twelve hexadecimal digits: of 100,000 rules two have the same once in 50,000 files.
std::string invariant_id(const Invariant& invariant);
// "every parameter at an optimizer's step, where held: has grad"
std::string invariant_words(const Invariant& invariant, const RuleView& view);
// "21 programs, 4,410 rows, never broken"; "not looked at in good runs".
std::string evidence_words(const RuleEvidence& evidence);
// The chance that another program breaks it, at most, with 95 % confidence. Where n have kept it:
// 1 - 0.05^(1/n), the rule of three (Hanley and Lippman-Hand, JAMA 249, 1983). Where some have
// broken it: the upper bound of Clopper and Pearson.
double risk_95(uint32_t programs, uint32_t broken = 0);

}  // namespace opguard
