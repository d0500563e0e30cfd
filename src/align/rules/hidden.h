// align/rules/hidden.h: what rules hide of two aligned runs: docs/guide/noise.md.
//
//   rule        clock.*  -- why: the wall clock
//   a   t = clock()  17.2      lr = base * t      loss 0.51
//   b   t = clock()  18.9      lr = base * t      loss 0.48
//
// A hidden record is no evidence: t is no pivot, and is not certified. But its value goes on as it
// is. So `*` reads another value and is hidden as well (Residue::follows). Counterexample: the
// losses are made from t, and they differ. The rule does not make these runs identical.
//
// The cost: nothing without rules; else each unequal pair's slots are held against the rules once.
#pragma once

#include <unordered_set>
#include <vector>

#include "align/judge/value_flow.h"
#include "align/judge/verdict.h"
#include "align/rules/rules.h"

namespace opguard {

// What a rule did.
struct RuleUse {
  uint64_t matched = 0;       // records of both runs that it names
  uint64_t hidden = 0;        // differing records that it hid, a pair counted once
  uint64_t model_values = 0;  // of these, what the runs would have been judged by
};

// What is left of a pair's differences once rules have taken theirs.
enum class Residue : uint8_t {
  nothing,  // every difference is hidden, or there was none
  follows,  // results that differ where a hidden input did
  own,      // a difference no rule names
};

class HiddenRecords {
 public:
  // `rules` must stay.
  HiddenRecords(const std::vector<Rule>& rules, const Run& a, const Run& b);

  const std::vector<Rule>& rules() const { return *rules_; }
  const std::vector<RuleUse>& uses() const { return uses_; }
  bool empty() const { return rules_->empty(); }

  // The first rule that names the record; nullptr: none.
  const Rule* rule_of(int side, const EventRef& event, uint64_t slot) const;

  // Of what is kept (buffers, saved tensors: events of kind state), these values are not compared
  // in either run. A re-run cannot put run a's in their place.
  void leave_out(const std::unordered_set<ValueKey, ValueKeyHash>& kept) { left_out_ = kept; }

  Residue residue(const EventRef& a, const EventRef& b) const;

  // An origin of the walk (docs/design/judgement.md) that is a rule's business. `partner` as in
  // Timeline.
  const Rule* hides_origin(int side, const Origin& origin, const EventRef& partner) const;

  // Unequal pairs whose differences are all hidden, and operators that differ only by what they
  // read of these, become Equality::hidden. The counts of the alignment and of the rules follow.
  void apply(Alignment& alignment);

 private:
  const ProcessLog& log(int side, const EventRef& ref) const {
    return runs_[side]->processes[ref.process];
  }
  Event event(int side, const EventRef& ref) const { return log(side, ref).events[ref.event]; }
  struct Hits;  // what was hidden in one pair
  Residue residue(const EventRef& a, const EventRef& b, Hits* hits) const;
  void count_matched();
  void hide_alone(int side, const EventRef& ref);
  bool only_reads(const EventRef& a, const EventRef& b) const;
  void hold(int side, const EventRef& ref);

  const std::vector<Rule>* rules_;
  const Run* runs_[2];
  std::vector<RuleMatcher> matchers_[2];  // by process
  std::vector<RuleUse> uses_;
  std::unordered_set<ValueKey, ValueKeyHash> left_out_;
  std::unordered_set<ValueKey, ValueKeyHash> held_[2];  // values that hidden records differ by
};

}  // namespace opguard
