// Applies edits in one pass from the front, and refuses where their order would decide the result.
//
//   text "f(a)"     at 0 `og("m.f:1", `, nesting 1;  at 1 `)`, nesting -1      og("m.f:1", f)(a)
//   two at one place, nesting 1 and 2      nesting 1 first: the outer opening
//   two of one nesting, of other texts     refused: which is first?
//
// The same edit twice is one. At one offset insertions come before a replacement, since they stand
// in front of what it replaces.
//
// The cost: to sort the edits; the text is copied once.
#include <algorithm>
#include <tuple>

#include "patcher/patch.h"

namespace opguard {
namespace {

std::string describe(const Edit& edit) {
  return "'" + edit.text + "' for " + std::to_string(edit.length) + " bytes at " +
         std::to_string(edit.offset);
}

llvm::Error conflict(const Edit& a, const Edit& b) {
  return make_error("edits overlap: " + describe(a) + " and " + describe(b));
}

}  // namespace

llvm::Expected<std::string> apply_edits(const std::string& text, std::vector<Edit> edits) {
  auto key = [](const Edit& e) { return std::make_tuple(e.offset, e.length != 0, e.nesting); };
  std::stable_sort(edits.begin(), edits.end(),
                   [&](const Edit& a, const Edit& b) { return key(a) < key(b); });
  edits.erase(std::unique(edits.begin(), edits.end()), edits.end());

  std::string out;
  out.reserve(text.size() + 32 * edits.size());
  uint32_t at = 0;
  for (size_t i = 0; i < edits.size(); ++i) {
    const Edit& edit = edits[i];
    if (edit.offset > text.size() || edit.length > text.size() - edit.offset)
      return make_error("edit beyond the text: " + describe(edit));
    if (i > 0 && (edit.offset < at || key(edits[i - 1]) == key(edit)))
      return conflict(edits[i - 1], edit);
    out.append(text, at, edit.offset - at).append(edit.text);
    at = edit.offset + edit.length;
  }
  out.append(text, at);
  return out;
}

}  // namespace opguard
