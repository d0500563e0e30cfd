// A rename is voted for by lines: those that are alike, token by token, in everything but names.
//
//   a  hidden = self.norm(hidden)     b  h = self.norm(h)      hidden stands for h, twice
//   a  hidden = hidden + bias         b  h = h                 fewer tokens: it says nothing
//
// One pair of names in a whole function, either way, is a rename. Two pairs with one name in common
// are none.
//
// Counterexample: a name that the other function has as well. `x` for `y` where both have x and y
// is an exchange of values.
//
// The cost: the tokens of each changed line, the variables of each function that holds changes.
#include "suspects/renames.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "suspects/words.h"

namespace opguard {
namespace {

// Words, and every other character by itself; blanks are left out.
std::vector<std::string_view> tokens(std::string_view text) {
  std::vector<std::string_view> found;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (is_word(text[i]))
      while (end < text.size() && is_word(text[end])) ++end;
    if (!std::isspace(static_cast<unsigned char>(text[i])))
      found.push_back(text.substr(i, end - i));
    i = end;
  }
  return found;
}

// A function of both programs that holds changes.
struct Function {
  std::array<std::span<const Variable>, 2> variables;
  // By side: all names of its variables, and those that the function itself gives a value.
  std::array<std::set<std::string_view>, 2> names, made;
};

using Renames = std::map<std::string, std::string>;  // of a: of b

// Pairs of names that stand for one another in lines that are alike in all but names.
void add_pairs(const ExchangePart& part, const Function& function,
               std::set<std::pair<std::string, std::string>>& pairs) {
  const std::string text[2] = {text_of(part, 0), text_of(part, 1)};
  const auto a = tokens(text[0]), b = tokens(text[1]);
  if (a.size() != b.size()) return;
  std::set<std::pair<std::string, std::string>> found;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    // Another attribute, number or function: the line differs in more than variables.
    if (!function.names[0].contains(a[i]) || !function.names[1].contains(b[i])) return;
    found.emplace(a[i], b[i]);
  }
  pairs.merge(found);
}

Renames renames_of(const Function& function,
                   const std::set<std::pair<std::string, std::string>>& pairs) {
  std::map<std::string_view, size_t> times[2];
  for (const auto& [a, b] : pairs) ++times[0][a], ++times[1][b];
  Renames renames;
  for (const auto& [a, b] : pairs)
    if (times[0][a] == 1 && times[1][b] == 1 && function.made[0].contains(a) &&
        function.made[1].contains(b) && !function.names[0].contains(b) &&
        !function.names[1].contains(a))
      renames[a] = b;
  return renames;
}

// The part's text of a, with each variable by its name in b.
std::string renamed(const ExchangePart& part, std::span<const Variable> variables,
                    const Renames& renames) {
  const SourceFile& file = *part.file[0];
  const std::string text = text_of(part, 0);
  if (text.empty()) return text;
  const size_t start = file.line_starts[part.first[0] - 1], end = start + text.size();
  std::string out;
  size_t next = start;
  for (const Variable& variable : variables) {
    const auto at = renames.find(std::string(variable.name));
    // Variables come in their order; those outside of the part are passed over.
    if (at == renames.end() || variable.start < next || variable.end > end) continue;
    out += file.text.substr(next, variable.start - next) + at->second;
    next = variable.end;
  }
  return out + file.text.substr(next, end - next);
}

}  // namespace

LineSpan names_around(const Code& code, const ExchangePart& part, int side) {
  const SourceFile& source = *part.file[side];
  const std::optional<uint32_t> file = code.find(source.path);
  if (!file) return {1, static_cast<uint32_t>(source.line_starts.size())};
  const std::vector<Scope>& scopes = code.files()[*file].scopes;
  // What has no lines stands before its `first`, so it is of the function of the line before.
  const uint32_t line =
      part.count[side] > 0 ? part.first[side] : std::max(part.first[side], 2u) - 1;
  uint32_t at = code.files()[*file].scope_at(line);
  while (scopes[at].kind == Scope::Kind::klass) at = scopes[at].parent;
  return scopes[at].lines;
}

void undo_renames(const Code (&code)[2], const FileBindings& bindings,
                  std::vector<ExchangePart>& parts) {
  // A file and the first line of a function, of each side.
  using Place = std::pair<const SourceFile*, uint32_t>;
  std::map<std::pair<Place, Place>, std::vector<size_t>> of_function;
  for (size_t i = 0; i < parts.size(); ++i) {
    Place at[2];
    for (int side : {0, 1})
      at[side] = {parts[i].file[side], names_around(code[side], parts[i], side).first};
    of_function[{at[0], at[1]}].push_back(i);
  }
  for (const auto& [places, held] : of_function) {
    Function function;
    for (int side : {0, 1}) {
      const ExchangePart& any = parts[held.front()];
      if (const auto file = bindings.find(any.file[side]); file != bindings.end())
        function.variables[side] = file->second.variables(names_around(code[side], any, side));
      for (const Variable& variable : function.variables[side]) {
        function.names[side].insert(variable.name);
        if (variable.made) function.made[side].insert(variable.name);
      }
    }
    std::set<std::pair<std::string, std::string>> pairs;
    for (size_t i : held) add_pairs(parts[i], function, pairs);
    const Renames renames = renames_of(function, pairs);
    if (renames.empty()) continue;
    for (size_t i : held) {
      parts[i].given = renamed(parts[i], function.variables[0], renames);
      for (const auto& [a, b] : renames) parts[i].renamed.insert({a, b});
    }
  }
  std::erase_if(parts,
                [](const ExchangePart& part) { return text_of(part, 0) == text_of(part, 1); });
}

}  // namespace opguard
