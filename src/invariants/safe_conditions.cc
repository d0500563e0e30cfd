// The search behind ConditionSearch: sets of conditions, level by level, each from a shorter one.
//
//   length 1   held=yes             no counterexample meets it: safe, and kept
//              requires_grad=yes    two counterexamples meet it: open
//              called=yes           one meets it: open
//              decays=yes           too few voters keep it: dropped, with all that contain it
//   length 2   requires_grad=yes, called=yes    none meets both, and each is needed: safe
//
// A safe set is never made longer. In a longer one some condition would keep out nothing, and that
// is no minimal set any more. A set with a condition that is not needed is dropped too. What a
// condition alone keeps out only gets less as others join it. So no later level would need the set.
//
// Counterexample: a decision tree asks one column first and misses sets whose parts say nothing
// alone. Here all sets of up to most_literals are looked at.
//
// The cost: a step is an "and" of bit sets, a word for 64 patterns, and stops as soon as enough
// voters were seen.
#include "invariants/safe_conditions.h"

#include <algorithm>
#include <initializer_list>
#include <set>

namespace opguard {

namespace {

// A set of conditions that is not safe yet.
struct OpenConditions {
  std::vector<size_t> literals;  // ascending
  // The patterns, of those where the conclusion's column is known, that meet all of them.
  PatternSet meets;
};

// One conclusion, and what may be asked for it.
//
//   known_      patterns that have the anchor's value and any value of the concluded column
//   positive_   of these, where it is the concluded value; negative_: where it is another
class ConclusionSearch {
 public:
  ConclusionSearch(const VotedPatterns& voted, const std::vector<Literal>& literals,
                   ColumnValue then, std::optional<ColumnValue> anchor, const SearchLimits& limits)
      : voted_(voted), limits_(limits), then_(then), anchor_(anchor) {
    const size_t size = voted.patterns.size();
    known_ = positive_ = PatternSet(size);
    for (size_t i = 0; i < size; ++i) {
      const auto& cells = voted.patterns[i].cells;
      if (cells[then.column] == kUnknown) continue;
      if (anchor && cells[anchor->column] != anchor->value) continue;
      known_.insert(i);
      if (cells[then.column] == then.value) positive_.insert(i);
    }
    negative_ = known_.without(positive_);
    for (const Literal& literal : literals)
      // What all have is no condition.
      if (may_ask(literal.column) && !known_.without(literal.patterns).empty())
        literals_.push_back(&literal);
  }

  std::vector<SafeConditions> search() {
    // Too few voters keep it even without a condition: no set of conditions has more.
    if (!votes({&positive_}, limits_.least_voters)) return {};
    // Nobody contradicts it. It is a rule without conditions, and each longer one would say less.
    if (!votes({&negative_}, limits_.most_breaking + 1)) {
      keep({});
      return std::move(found_);
    }
    std::vector<OpenConditions> open = {{{}, known_}};
    for (size_t length = 1; length <= limits_.most_literals && !open.empty(); ++length) {
      std::vector<OpenConditions> longer;
      for (const OpenConditions& before : open) extend(before, length, longer);
      open = std::move(longer);
    }
    return std::move(found_);
  }

 private:
  // A condition must not say the conclusion in other words: "gradient_finite, so has_grad" is no
  // rule. That is what families are for. The anchor is a condition anyway.
  bool may_ask(size_t column) const {
    const ViewColumn& asked = voted_.view->columns[column];
    const std::string_view family = voted_.view->columns[then_.column].family;
    if (column == then_.column || !asked.condition) return false;
    if (anchor_ && column == anchor_->column) return false;
    return family.empty() || asked.family != family;
  }

  // At least so many voters have a pattern that is in all of the sets.
  bool votes(std::initializer_list<const PatternSet*> sets, uint32_t least) const {
    if (least == 0) return true;
    // `seen_` is searched by hand, since it never grows past `least`: a few numbers.
    seen_.clear();
    return PatternSet::each_common(sets, [&](size_t i) {
      for (uint32_t voter : voted_.patterns[i].voters) {
        if (std::find(seen_.begin(), seen_.end(), voter) != seen_.end()) continue;
        seen_.push_back(voter);
        if (seen_.size() >= least) return true;
      }
      return false;
    });
  }

  // Voters whose counterexamples a condition has to keep out. Where some voters may break the rule
  // all the same, it is one more than these. With fewer the rule could stand without it.
  uint32_t needed(const Literal& literal) const {
    const bool known = voted_.view->columns[literal.column].semantic || voted_.view->across_ranks;
    return std::max(known ? 1 : limits_.least_against, limits_.most_breaking + 1);
  }

  // The names of one program are many, and say little together with others.
  bool too_wide(const OpenConditions& before, const Literal& added) const {
    if (before.literals.size() < 2) return false;
    auto names = [&](const Literal& l) { return voted_.view->columns[l.column].names; };
    return names(added) || std::any_of(before.literals.begin(), before.literals.end(),
                                       [&](size_t i) { return names(*literals_[i]); });
  }

  // Without any one of them, counterexamples would meet the others.
  // The cases of one and of two conditions are written out, since the general way below copies
  // sets. It is reached with most_literals over 3, which no caller asks for.
  bool all_needed(const OpenConditions& before, size_t added) const {
    if (!votes({&before.meets, &negative_}, needed(*literals_[added]))) return false;
    const PatternSet* with = &literals_[added]->patterns;
    switch (before.literals.size()) {
      case 0:
        return true;
      case 1:
        return votes({with, &negative_}, needed(*literals_[before.literals[0]]));
      case 2: {
        const Literal &a = *literals_[before.literals[0]], &b = *literals_[before.literals[1]];
        return votes({with, &b.patterns, &negative_}, needed(a)) &&
               votes({with, &a.patterns, &negative_}, needed(b));
      }
    }
    for (size_t left_out : before.literals) {
      PatternSet rest = negative_ & *with;
      for (size_t other : before.literals)
        if (other != left_out) rest = rest & literals_[other]->patterns;
      if (!votes({&rest}, needed(*literals_[left_out]))) return false;
    }
    return true;
  }

  // Only literals behind the last one are added, so a set is made once: a, b and never b, a.
  void extend(const OpenConditions& before, size_t length, std::vector<OpenConditions>& longer) {
    const size_t first = before.literals.empty() ? 0 : before.literals.back() + 1;
    for (size_t i = first; i < literals_.size(); ++i) {
      const Literal& added = *literals_[i];
      // Literals are in the order of columns. Two values of one column never occur in one row.
      if (!before.literals.empty() && literals_[before.literals.back()]->column == added.column)
        continue;
      if (too_wide(before, added)) continue;
      if (!votes({&before.meets, &added.patterns, &positive_}, limits_.least_voters)) continue;
      if (!all_needed(before, i)) continue;
      // At most most_breaking voters contradict it: it is safe. Else it is tried with one more.
      if (!votes({&before.meets, &added.patterns, &negative_}, limits_.most_breaking + 1)) {
        std::vector<size_t> kept = before.literals;
        kept.push_back(i);
        keep(std::move(kept));
      } else if (length < limits_.most_literals) {
        longer.push_back({before.literals, before.meets & added.patterns});
        longer.back().literals.push_back(i);
      }
    }
  }

  std::vector<uint32_t> voters_of(const PatternSet& set, bool runs = false) const {
    std::set<uint32_t> all;
    set.each([&](size_t i) {
      const auto& of = runs ? voted_.patterns[i].runs : voted_.patterns[i].voters;
      all.insert(of.begin(), of.end());
    });
    return {all.begin(), all.end()};
  }

  uint64_t rows_of(const PatternSet& set) const {
    uint64_t rows = 0;
    set.each([&](size_t i) { rows += voted_.patterns[i].rows; });
    return rows;
  }

  // A set that is safe, with what speaks for it. `against` counts the rows that the conditions keep
  // out: without any there would be no reason for them.
  void keep(std::vector<size_t> literals) {
    SafeConditions safe;
    PatternSet meets = known_;
    if (anchor_) safe.when.push_back(*anchor_);
    for (size_t i : literals) {
      safe.when.push_back({literals_[i]->column, literals_[i]->value});
      meets = meets & literals_[i]->patterns;
    }
    safe.keeps = meets & positive_;
    safe.rows = rows_of(safe.keeps);
    safe.against = rows_of(negative_.without(meets));
    safe.voters = voters_of(safe.keeps);
    safe.runs = voters_of(safe.keeps, true);
    safe.breaking = voters_of(meets & negative_);
    // Who needs each condition: the voters whose counterexamples meet all the others.
    std::vector<std::vector<uint32_t>> need(literals.size());
    for (size_t l = 0; l < literals.size(); ++l) {
      PatternSet rest = negative_;
      for (size_t other : literals)
        if (other != literals[l]) rest = rest & literals_[other]->patterns;
      need[l] = voters_of(rest);
    }
    // Without a voter's rows the set is found again where another voter keeps it and each condition
    // is still needed. least_voters is not asked for once more.
    for (uint32_t voter : safe.voters) {
      bool found = safe.voters.size() >= 2;
      for (size_t l = 0; found && l < literals.size(); ++l)
        found = need[l].size() - std::binary_search(need[l].begin(), need[l].end(), voter) >=
                needed(*literals_[literals[l]]);
      safe.held_out += found;
    }
    found_.push_back(std::move(safe));
  }

  const VotedPatterns& voted_;
  const SearchLimits& limits_;
  ColumnValue then_;
  std::optional<ColumnValue> anchor_;
  PatternSet known_, positive_, negative_;
  std::vector<const Literal*> literals_;
  std::vector<SafeConditions> found_;
  mutable std::vector<uint32_t> seen_;
};

}  // namespace

ConditionSearch::ConditionSearch(const VotedPatterns& voted, const CellTexts& texts)
    : voted_(voted) {
  const size_t columns = voted.view->columns.size();
  for (size_t c = 0; c < columns; ++c) {
    const size_t first = literals_.size();
    // By a text's number: where its literal stands. The cost: one pass over the patterns for each
    // column.
    std::vector<uint32_t> at(texts.size(), kNone);
    for (size_t i = 0; i < voted.patterns.size(); ++i) {
      const uint32_t value = voted.patterns[i].cells[c];
      if (value == kUnknown) continue;
      if (at[value] == kNone) {
        at[value] = static_cast<uint32_t>(literals_.size());
        literals_.push_back({static_cast<uint32_t>(c), value, PatternSet(voted.patterns.size())});
      }
      literals_[at[value]].patterns.insert(i);
    }
    // By their texts, since numbers depend on the order of the logs.
    std::sort(literals_.begin() + static_cast<ptrdiff_t>(first), literals_.end(),
              [&](const Literal& a, const Literal& b) {
                return texts.text(a.value) < texts.text(b.value);
              });
  }
}

std::vector<uint32_t> ConditionSearch::values(size_t column) const {
  std::vector<uint32_t> found;
  for (const Literal& literal : literals_)
    if (literal.column == column) found.push_back(literal.value);
  return found;
}

std::vector<SafeConditions> ConditionSearch::all(ColumnValue then,
                                                 std::optional<ColumnValue> anchor,
                                                 const SearchLimits& limits) const {
  return ConclusionSearch(voted_, literals_, then, anchor, limits).search();
}

//   held=yes             kept by 40 patterns of 9 programs: first
//   called=yes           30 of these 40 and no other: dropped, nobody would miss it
//   decays=no, leaf=no   two patterns that held=yes leaves: stays
//
// The sort is stable: of equals the one stays first whose columns and texts come first.
std::vector<SafeConditions> decision_list(std::vector<SafeConditions> all) {
  std::stable_sort(all.begin(), all.end(), [](const SafeConditions& a, const SafeConditions& b) {
    if (a.voters.size() != b.voters.size()) return a.voters.size() > b.voters.size();
    if (a.rows != b.rows) return a.rows > b.rows;
    return a.when.size() < b.when.size();
  });
  std::vector<SafeConditions> kept;
  PatternSet covered;
  for (SafeConditions& one : all) {
    // A set does not say its size. capacity() is that, rounded up to whole words.
    if (kept.empty()) covered = PatternSet(one.keeps.capacity());
    if (one.keeps.without(covered).empty()) continue;
    covered |= one.keeps;
    kept.push_back(std::move(one));
  }
  return kept;
}

}  // namespace opguard
