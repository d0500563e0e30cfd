// Which parts are import lines, and whether having both programs' lines changes what a name means.
//
//   a  from typing import Optional     b  from typing import Union     shared: both lines
//   a  from m import f                 b  from n import f              shared, and asked as well
//
// Counterexample: a line within brackets whose last name has no comma behind it. Another program's
// names put behind it would be no Python, so it stays a part.
//
// The cost: the items of both files for each part of imports.
#include "suspects/imports.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace opguard {
namespace {

// The names that import lines make: "np" -> "import numpy".
using Imported = std::map<std::string, std::string>;

bool is_import(const Node& node) {
  const std::string_view type = node.type();
  return type == "import_statement" || type == "import_from_statement" ||
         type == "future_import_statement";
}

// What a statement's names within the lines make.
void add_names(const CodeFile& file, const Node& statement, const LineSpan& lines,
               Imported& names) {
  auto text = [&](const Node& node) { return std::string(file.text(node.index())); };
  // "from typing"; "" of `import numpy as np`.
  const std::string all = text(statement);
  const std::string from = all.starts_with("from") ? all.substr(0, all.find(" import")) : "";
  for (const Node& child : statement.fields(Field::name)) {
    const LineSpan at = file.lines(child.index());
    if (!at.meets(lines)) continue;
    const std::string whole = text(child);
    const size_t as = whole.rfind(" as ");
    // `import numpy.linalg` makes `numpy`, `import numpy.linalg as la` makes `la`.
    std::string made = as == whole.npos ? whole : whole.substr(as + 4);
    if (from.empty() && as == whole.npos) made = made.substr(0, made.find('.'));
    names[made] = from + ":" + whole;
  }
}

// The names of these lines; none if they hold anything but imports.
std::optional<Imported> imported(const CodeFile& file, const LineSpan& lines) {
  Imported names;
  if (lines.empty()) return names;
  if (!file.tree) return std::nullopt;
  const std::vector<TreeItem>& items = file.tree->items();
  std::set<uint32_t> seen;
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (items[i].after != i + 1 || !is_code(file, i) || !file.lines(i).meets(lines)) continue;
    const uint32_t statement = file.statement_of(i);
    const Node node = file.node(statement);
    if (!is_import(node)) return std::nullopt;
    if (seen.insert(statement).second) add_names(file, node, lines, names);
  }
  return names;
}

// Both can stand behind one another: whole statements, or names of one in brackets with a comma
// behind the last.
bool can_precede(const CodeFile& file, const LineSpan& lines) {
  if (lines.empty()) return true;
  const std::vector<TreeItem>& items = file.tree->items();
  bool inside = false, whole = true;
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (!is_statement(file.node(i)) || !file.lines(i).meets(lines)) continue;
    const LineSpan at = file.lines(i);
    // Whole: no statement reaches out of the lines. Inside: one begins before and ends behind them.
    whole &= lines.first <= at.first && at.last <= lines.last;
    inside |= at.first < lines.first && lines.last < at.last;
  }
  std::string_view last = file.source->line_text(lines.last);
  while (!last.empty() && (last.back() == ' ' || last.back() == '\t')) last.remove_suffix(1);
  return whole || (inside && last.ends_with(','));
}

// Names that a file uses or makes anywhere, but for these import lines.
Words names_of(const CodeFile& file, const LineSpan& but) {
  Words names;
  if (!file.tree) return names;
  for (uint32_t i = 0; i < file.tree->items().size(); ++i)
    if (file.tree->items()[i].kind == Kind::identifier && !file.lines(i).meets(but))
      names.emplace(file.text(i));
  return names;
}

}  // namespace

SharedImports take_imports(const Code (&code)[2], std::vector<ExchangePart>& parts) {
  SharedImports shared;
  Words made[2];
  for (const ExchangePart& part : parts)
    for (int side : {0, 1}) made[side].merge(made_in(text_of(part, side)));
  std::erase_if(parts, [&](ExchangePart& part) {
    const CodeFile* files[2];
    std::optional<Imported> names[2];
    for (int side : {0, 1}) {
      const auto file = code[side].find(part.file[side]->path);
      if (!file || !code[side].files()[*file].tree) return false;
      files[side] = &code[side].files()[*file];
      names[side] = imported(*files[side], span_of(part, side));
      if (!names[side]) return false;
    }
    if (names[0]->empty() && names[1]->empty()) return false;
    if (!can_precede(*files[0], span_of(part, 0)) || !can_precede(*files[1], span_of(part, 1)))
      return false;
    bool other_source = false;
    for (int side : {0, 1}) {
      const Words elsewhere = names_of(*files[1 - side], span_of(part, 1 - side));
      for (const auto& [name, source] : *names[side]) {
        // It is imported from what another change makes: they are exchanged together.
        if (made[side].contains(name)) return false;
        const auto same = names[1 - side]->find(name);
        other_source |=
            // Of another source than the other program's line says, or than the name has elsewhere
            // in its file.
            same != names[1 - side]->end() ? same->second != source : elsewhere.contains(name);
      }
    }
    for (int side : {0, 1})
      for (const auto& [name, source] : *names[side])
        shared.names[side][part.file[side]].insert(name);
    shared.parts.push_back(part);
    shared.parts.back().given = text_of(part, 0) + text_of(part, 1);
    // The last line of a name counts: in the shared lines b's, in the part that is asked a's.
    if (other_source) part.given = text_of(part, 1) + text_of(part, 0);
    return !other_source;
  });
  return shared;
}

}  // namespace opguard
