// align/rules/rules.h: which records a user wants passed over, and why: docs/guide/noise.md.
//
//   BOUNDARY[@OCCURRENCE][:SLOT][,KEY=VALUE...] -- why: REASON
//
//   loader.item:*,operator=time.* -- why: the clock
//   *:in/arg1,dtype=float16,shape=[4, *] -- why: padding that nobody reads
//
// The selection is record/selection_text.h's, with `*` and `?` for any text and any character.
// Counterexample: a rule without a reason is refused. Nobody could tell a year later whether it
// still holds.
//
// The cost: what depends on the boundary alone is found out once a boundary, not once an event.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "record/record.h"
#include "support/diagnostics.h"

namespace opguard {

struct Rule {
  std::string text;   // the selection as it was written
  std::string why;    // never empty
  std::string place;  // "noise.rules:3", "--ignore"
  // Without an occurrence a boundary's colon cannot be told from a slot's: this is both.
  std::string boundary;
  bool slot_in_boundary = false;
  std::optional<uint32_t> occurrence;
  std::string slot;                                                 // "": all
  std::string kind, phase, node, op, file, function, dtype, shape;  // "": any
  std::optional<int32_t> rank;
  std::optional<uint32_t> step;

  std::string line() const { return text + " -- why: " + why; }
};

// One rule a line; what is empty or begins with '#' is skipped. `name` stands for the text in
// errors and in Rule::place. False: `diags` says what is wrong, with line and column.
bool parse_rules(const std::string& text, const std::string& name, std::vector<Rule>& rules,
                 Diagnostics& diags);

// A part of an event that a rule may name.
struct RecordPart {
  enum class Kind : uint8_t { in, out, written, scalar, result } kind = Kind::in;
  std::string_view name;       // "arg0", "dim"
  uint32_t index = 0;          // among those of its kind: "in0"
  const Meta* meta = nullptr;  // of a tensor
};

// A rule held against the events of one log. What depends on the boundary alone is found out once.
class RuleMatcher {
 public:
  RuleMatcher(const std::vector<Rule>& rules, const ProcessLog& log);

  // False: no rule names anything of this boundary.
  bool any(const Event& event) const { return !of(event).empty(); }

  // The rules that name this part of the event, by index.
  std::vector<uint32_t> rules_of(const Event& event, const RecordPart& part) const;
  std::vector<uint32_t> rules_of(const Event& event, const Slot& slot) const;
  // The rules that name all of the event.
  std::vector<uint32_t> whole(const Event& event) const;

 private:
  struct Reading {  // a rule as it reads for a boundary
    uint32_t rule;
    std::string_view slot;
  };
  const std::vector<Reading>& of(const Event& event) const;
  bool means(const Rule& rule, const Event& event) const;

  const std::vector<Rule>& rules_;
  const ProcessLog& log_;
  std::vector<std::vector<Reading>> readings_;  // by string
};

}  // namespace opguard
