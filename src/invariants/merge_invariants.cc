// Files of rules as values: put together, muted, looked up.
#include <algorithm>
#include <map>
#include <tuple>

#include "invariants/invariants_file.h"

namespace opguard {

InvariantsFile merge_invariants(const InvariantsFile& a, const InvariantsFile& b) {
  InvariantsFile merged;
  merged.tool = std::max(a.tool, b.tool);
  std::map<std::string, uint32_t> programs;
  std::map<std::pair<std::string, std::string>, Invariant> rules;
  for (const InvariantsFile* file : {&a, &b}) {
    for (const auto& [name, runs] : file->programs) programs[name] = std::max(programs[name], runs);
    for (const Invariant& rule : file->invariants) {
      auto [at, fresh] = rules.try_emplace({rule.view, rule.id}, rule);
      if (fresh) continue;
      auto worth = [](const Invariant& r) {
        return std::tuple(r.evidence.programs, r.evidence.runs, r.evidence.rows, -int(r.severity),
                          r.says);
      };
      const std::string muted = std::max(at->second.muted, rule.muted);
      if (worth(rule) > worth(at->second)) at->second = rule;
      at->second.muted = muted;
    }
    for (const std::string& note : file->notes)
      if (std::ranges::find(merged.notes, note) == merged.notes.end()) merged.notes.push_back(note);
  }
  std::ranges::sort(merged.notes);
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
