// Notes of a file are for a person, and outlive the merge. merge_invariants() joins the rules, and
// the notes of all files are put behind one another.
#include "session/read_rules.h"

#include "invariants/builtin.h"
#include "plan/json_text.h"
#include "support/diagnostics.h"

namespace opguard {

llvm::Expected<InvariantsFile> read_rules_file(const std::string& name) {
  std::string text, error;
  if (name == "builtin")
    text = builtin_rules();
  else if (!read_file(name, text, error))
    return make_error(error);
  InvariantsFile file;
  Diagnostics diags;
  if (!parse_invariants(name, text, views(), file, diags)) {
    std::string said = diags.text();
    while (said.ends_with('\n')) said.pop_back();
    return make_error(said);
  }
  return file;
}

llvm::Expected<InvariantsFile> read_rules_files(const std::vector<std::string>& names,
                                                const std::vector<std::string>& ignored) {
  InvariantsFile all;
  for (const std::string& name : names.empty() ? std::vector<std::string>{"builtin"} : names) {
    auto file = read_rules_file(name);
    if (!file) return file.takeError();
    const std::vector<std::string> notes = file->notes;
    std::vector<std::string> before = all.notes;
    all = all.invariants.empty() ? std::move(*file) : merge_invariants(all, *file);
    all.notes = std::move(before);
    all.notes.insert(all.notes.end(), notes.begin(), notes.end());
  }
  for (const std::string& id : ignored) {
    const Invariant* found = find_invariant(all, id);
    if (!found) return make_error("no rule, or more than one, has an id that begins with " + id);
    all.invariants[static_cast<size_t>(found - all.invariants.data())].muted = "--ignore";
  }
  if (all.invariants.empty()) return make_error("no rule is left in the files of invariants");
  return all;
}

}  // namespace opguard
