#include "suspects/exchange_joins.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "suspects/renames.h"
#include "suspects/signatures.h"
#include "suspects/words.h"

namespace opguard {
namespace {

struct ExchangeFacts {
  const std::vector<ExchangePart>& changes;
  const Code (&code)[2];
  const FileBindings& bindings;
  const SharedImports& imports;
  std::map<const SourceFile*, std::vector<Signature>> signatures;
  std::map<const SourceFile*, std::vector<CallShape>> calls;
};

// Disjoint sets. The root is the smallest member, so a group is called by its first change.
class Union {
 public:
  explicit Union(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t find(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t i, size_t k) {
    parent_[std::max(find(i), find(k))] = std::min(find(i), find(k));
  }

 private:
  std::vector<size_t> parent_;
};

// Joins the changes that use a name which one program alone has. In its own file first; a file
// that does not make the name has it from those that do.
void join_by_names(const std::vector<ExchangePart>& changes, int side, const SharedImports& imports,
                   Union& groups) {
  // Words of the other program's changed files: what it has itself it needs from no change.
  Words there;
  for (const ExchangePart& change : changes) there.merge(words_of(change.file[1 - side]->text));
  using Uses = std::map<const SourceFile*, std::vector<size_t>>;
  std::map<std::string, Uses> uses;
  std::map<std::string, std::set<const SourceFile*>> makers;
  for (size_t i = 0; i < changes.size(); ++i) {
    const std::string text = text_of(changes[i], side);
    const Words made = made_in(text);
    for (const std::string& word : words_of(text)) {
      if (there.contains(word) || changes[i].renamed.contains(word) ||
          imports.has(side, changes[i].file[side], word))
        continue;
      uses[word][changes[i].file[side]].push_back(i);
      if (made.contains(word)) makers[word].insert(changes[i].file[side]);
    }
  }
  for (const auto& [word, files] : uses)
    for (const auto& [file, all] : files) {
      // Uses of one name in one file, whether or not it is made there.
      for (size_t i : all) groups.join(all.front(), i);
      const auto& made = makers[word];
      // Helpers of one name in two files are two helpers.
      if (made.contains(file)) continue;
      for (const SourceFile* maker : made)
        for (size_t i : files.at(maker)) groups.join(all.front(), i);
    }
}

// Joins the changes of a function that make and use a local name which the other program's function
// has not, wherever else it has it. An attribute of that name is no such name.
//   a  total = x + y        b  return x + y
//      return total
void join_by_locals(const ExchangeFacts& facts, int side, Union& groups) {
  struct Local {
    std::vector<size_t> uses;
    bool made = false;
  };
  std::map<std::tuple<const SourceFile*, uint32_t, std::string_view>, Local> locals;
  for (size_t i = 0; i < facts.changes.size(); ++i) {
    const ExchangePart& change = facts.changes[i];
    std::set<std::string_view> there;
    const LineSpan other = names_around(facts.code[1 - side], change, 1 - side);
    for (const Variable& variable : facts.bindings.at(change.file[1 - side]).variables(other))
      there.insert(variable.name);
    const uint32_t around = names_around(facts.code[side], change, side).first;
    const SourceFile* file = change.file[side];
    for (const Variable& variable : facts.bindings.at(file).variables(span_of(change, side))) {
      if (there.contains(variable.name) || change.renamed.contains(variable.name) ||
          facts.imports.has(side, file, std::string(variable.name)))
        continue;
      Local& local = locals[{file, around, variable.name}];
      local.uses.push_back(i);
      local.made |= variable.made || variable.defined || variable.parameter;
    }
  }
  for (const auto& [name, local] : locals)
    if (local.made)
      for (size_t i : local.uses) groups.join(local.uses.front(), i);
}

// Joins the changes that make and use an attribute of `self` which the other program's class has
// not, wherever else it has the name.
//   a  self.heads = ModuleList(heads)        b  self.head = head
//      for head in self.heads: x += head(x)     x += self.head(x)
void join_by_members(const ExchangeFacts& facts, int side, Union& groups) {
  std::map<std::string_view, std::vector<size_t>> uses;
  std::set<std::string_view> made;
  for (size_t i = 0; i < facts.changes.size(); ++i) {
    const ExchangePart& change = facts.changes[i];
    const Bindings& other = facts.bindings.at(change.file[1 - side]);
    for (const Member& member :
         facts.bindings.at(change.file[side]).members(span_of(change, side))) {
      if (member.klass.empty() || other.has_member(member.klass, member.name)) continue;
      uses[member.name].push_back(i);
      if (member.made) made.insert(member.name);
    }
  }
  // By the name alone: what one class makes its subclass uses.
  for (std::string_view name : made)
    for (size_t i : uses[name]) groups.join(uses[name].front(), i);
}

// Joins a change of a function's parameters with the changed calls that fit this program's alone.
void join_by_signatures(const ExchangeFacts& facts, int side, Union& groups) {
  // Functions of both programs, by the name of a call: this program's, the other's, and the
  // changes of their parameters.
  struct Function {
    const Signature *own, *other;
    std::vector<size_t> changes;
  };
  std::map<std::string, std::vector<Function>> functions;
  std::map<std::pair<const SourceFile*, const SourceFile*>, std::vector<size_t>> of_files;
  for (size_t i = 0; i < facts.changes.size(); ++i)
    of_files[{facts.changes[i].file[side], facts.changes[i].file[1 - side]}].push_back(i);
  for (const auto& [files, all] : of_files) {
    std::map<std::string_view, const Signature*> others;
    // A function is the same in both programs where its path is: "Net.pairs".
    for (const Signature& other : facts.signatures.at(files.second)) others[other.path] = &other;
    for (const Signature& own : facts.signatures.at(files.first)) {
      const auto other = others.find(own.path);
      if (other == others.end()) continue;
      Function function{&own, other->second, {}};
      for (size_t i : all)
        if (own.lines.meets(span_of(facts.changes[i], side)) ||
            other->second->lines.meets(span_of(facts.changes[i], 1 - side)))
          function.changes.push_back(i);
      if (!function.changes.empty()) functions[own.name].push_back(std::move(function));
    }
  }
  for (const auto& [files, all] : of_files)
    for (const CallShape& call : facts.calls.at(files.first)) {
      const auto named = functions.find(call.name);
      if (named == functions.end()) continue;
      for (size_t i : all) {
        if (!call.lines.meets(span_of(facts.changes[i], side))) continue;
        for (const Function& function : named->second)
          // Of several functions of one name any may be meant.
          if (needs(call, *function.own, *function.other))
            for (size_t k : function.changes) groups.join(i, k);
      }
    }
}

// A name that b's program gets in another place (a statement that moved): taken back in the one
// place alone it would be missing.
void join_moved(const std::vector<ExchangePart>& changes, Union& groups) {
  std::map<std::pair<const SourceFile*, std::string>, std::vector<size_t>> makers[2];
  for (size_t i = 0; i < changes.size(); ++i) {
    Words made[2];
    for (int side : {0, 1}) made[side] = made_in(text_of(changes[i], side));
    for (int side : {0, 1})
      for (const std::string& name : made[side])
        // A line that makes the name on both sides is no move.
        if (!made[1 - side].contains(name)) makers[side][{changes[i].file[1], name}].push_back(i);
  }
  for (const auto& [name, there] : makers[1]) {
    for (size_t i : there) groups.join(there.front(), i);
    if (const auto at = makers[0].find(name); at != makers[0].end())
      for (size_t i : at->second) groups.join(there.front(), i);
  }
}

// The lines of the statements of several lines; of a compound one those of its header.
std::vector<LineSpan> long_statements(const CodeFile& file) {
  std::vector<LineSpan> spans;
  if (!file.tree) return spans;
  for (uint32_t i = 0; i < file.tree->items().size(); ++i) {
    if (!is_statement(file.node(i))) continue;
    const LineSpan span = file.statement_lines(i);
    if (span.last > span.first) spans.push_back(span);
  }
  return spans;
}

// A side without lines stands before its `first`.
bool inside(const ExchangePart& part, int side, const LineSpan& statement) {
  return part.count[side] > 0
             ? statement.meets(span_of(part, side))
             : statement.first < part.first[side] && part.first[side] <= statement.last;
}

// Has one of two changes of a statement what the other one misses?
//   a  f(query,        b  f(query,        `key,` left one place and came to another: in one alone
//        key,               value,        the call has it twice, or not at all
//        value)             key)
bool need_each_other(const ExchangePart& x, const ExchangePart& y) {
  auto of_one_side = [](const ExchangePart& part, int side) { return part.count[1 - side] == 0; };
  if (of_one_side(x, 0) && of_one_side(y, 1)) return true;
  if (of_one_side(x, 1) && of_one_side(y, 0)) return true;
  auto gives = [](const ExchangePart& from, const ExchangePart& to) {
    // A word that one change takes away and the other one brings.
    const Words lost = words_of(text_of(from, 0)), kept = words_of(text_of(from, 1));
    const Words had = words_of(text_of(to, 0)), gained = words_of(text_of(to, 1));
    return std::any_of(lost.begin(), lost.end(), [&](const std::string& word) {
      return !kept.contains(word) && gained.contains(word) && !had.contains(word);
    });
  };
  return gives(x, y) || gives(y, x);
}

void join_in_statements(const std::vector<ExchangePart>& changes, const Code (&code)[2],
                        Union& groups) {
  for (int side : {0, 1}) {
    std::map<const SourceFile*, std::vector<size_t>> of_file;
    for (size_t i = 0; i < changes.size(); ++i) of_file[changes[i].file[side]].push_back(i);
    for (const auto& [source, all] : of_file) {
      const auto file = code[side].find(source->path);
      if (all.size() < 2 || !file) continue;
      for (const LineSpan& statement : long_statements(code[side].files()[*file])) {
        std::vector<size_t> held;
        for (size_t i : all)
          if (inside(changes[i], side, statement)) held.push_back(i);
        for (size_t i = 0; i < held.size(); ++i)
          for (size_t k = i + 1; k < held.size(); ++k)
            if (need_each_other(changes[held[i]], changes[held[k]])) groups.join(held[i], held[k]);
      }
    }
  }
}

}  // namespace

std::vector<size_t> join_changes(const std::vector<ExchangePart>& changes, const Code (&code)[2],
                                 const FileBindings& bindings, const SharedImports& imports) {
  ExchangeFacts facts{changes, code, bindings, imports, {}, {}};
  for (const ExchangePart& change : changes)
    for (int side : {0, 1}) {
      const SourceFile* source = change.file[side];
      if (facts.signatures.contains(source)) continue;
      const auto file = code[side].find(source->path);
      const bool read = file && code[side].files()[*file].tree;
      facts.signatures[source] =
          read ? signatures_of(code[side].files()[*file]) : std::vector<Signature>();
      facts.calls[source] = read ? calls_of(code[side].files()[*file]) : std::vector<CallShape>();
    }
  Union groups(changes.size());
  for (int side : {0, 1}) {
    join_by_names(changes, side, imports, groups);
    join_by_locals(facts, side, groups);
    join_by_members(facts, side, groups);
    join_by_signatures(facts, side, groups);
  }
  join_moved(changes, groups);
  join_in_statements(changes, code, groups);
  std::vector<size_t> group(changes.size());
  for (size_t i = 0; i < changes.size(); ++i) group[i] = groups.find(i);
  return group;
}

}  // namespace opguard
