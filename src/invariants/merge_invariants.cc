// Files of rules as values: put together, muted, looked up.
//
//   a   has_grad, 9 programs, muted "not ours"      b   has_grad, 14 programs
//   merged   has_grad, 14 programs, muted "not ours"
//
// Merging is a maximum by an order in which all fields take part. So files can be merged in any
// order and in any groups.
//
// Counterexample: evidence is not added up. The files may rest on the same programs, and a program
// would have two votes.
//
// The cost: rules of both in a map by view and id.
#include <algorithm>
#include <map>
#include <tuple>

#include "invariants/invariants_file.h"

namespace opguard {

namespace {

// The larger one is kept. All fields are compared, so that nothing depends on the order of files.
auto evidence_order(const RuleEvidence& e) {
  return std::tuple(e.programs, e.runs, e.rows, e.against, e.breaking, e.held_out);
}

// Of rules that were found the evidence decides; what a person wrote stands.
auto words_order(const Invariant& rule) {
  const bool structural = rule.tier == InvariantTier::structural;
  return std::tuple(structural,
                    structural
                        ? std::tuple<uint32_t, uint32_t, uint64_t, uint64_t, uint32_t, uint32_t>{}
                        : evidence_order(rule.evidence),
                    -static_cast<int>(rule.severity), -static_cast<int>(rule.tier), rule.says);
}

// The same rule of two files.
Invariant merged_rule(const Invariant& a, const Invariant& b) {
  Invariant merged = words_order(a) < words_order(b) ? b : a;
  // On its own: a person's rule keeps its words and takes the better evidence.
  merged.evidence = std::max(a.evidence, b.evidence, [](const auto& x, const auto& y) {
    return evidence_order(x) < evidence_order(y);
  });
  // "" is the smallest, so whoever mutes it has muted it. Of two reasons the later one by letters
  // stays.
  merged.muted = std::max(a.muted, b.muted);
  return merged;
}

void add_missing(const std::vector<std::string>& from, std::vector<std::string>& into) {
  into.insert(into.end(), from.begin(), from.end());
  std::ranges::sort(into);
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

InvariantsFile merge_invariants(const InvariantsFile& a, const InvariantsFile& b) {
  InvariantsFile merged;
  merged.tool = std::max(a.tool, b.tool);
  std::map<std::string, uint32_t> programs;
  std::map<std::pair<std::string, std::string>, Invariant> rules;
  for (const InvariantsFile* file : {&a, &b}) {
    // Of one name the runs are not added either: they may be the same.
    for (const auto& [name, runs] : file->programs) programs[name] = std::max(programs[name], runs);
    for (const Invariant& rule : file->invariants) {
      auto [at, fresh] = rules.try_emplace({rule.view, rule.id}, rule);
      if (!fresh) at->second = merged_rule(at->second, rule);
    }
    add_missing(file->notes, merged.notes);
    add_missing(file->unread, merged.unread);
  }
  merged.programs.assign(programs.begin(), programs.end());
  for (auto& [key, rule] : rules) merged.invariants.push_back(std::move(rule));
  return merged;
}

const Invariant* find_invariant(const InvariantsFile& file, const std::string& id) {
  const Invariant* found = nullptr;
  for (const Invariant& rule : file.invariants) {
    if (rule.id == id) return &rule;
    if (id.empty() || !rule.id.starts_with(id)) continue;
    if (found) return nullptr;
    found = &rule;
  }
  return found;
}

bool mute_invariant(InvariantsFile& file, const std::string& id, const std::string& because) {
  const Invariant* found = find_invariant(file, id);
  if (!found) return false;
  file.invariants[found - file.invariants.data()].muted = because;
  return true;
}

}  // namespace opguard
