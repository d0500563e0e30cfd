// suspects/code.h: a side's sources as trees, with the functions and classes they hold.
//
//   file train.py    scopes   0 the module
//                             1 class Net, lines 3-9
//                             2 function forward of 1, lines 5-9
//   x = self.up(x)   item 57, scope_of[57] = 2
//
// A tree is an array of items (parser/tree.h), so a place is a file's index and an item's. The
// items of a node are those up to its `after`.
//
// Counterexample: a decorator and a default value stand in lines of a function, and the scope
// around it runs them. scope_of tells who runs an item, scope_at() whose lines they are.
//
// The cost: all files of a program are parsed and held, on all cores. A look-up by line goes over
// the file's scopes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "parser/tree.h"
#include "support/source.h"

namespace opguard {

// Lines first to last, counted from 1. Empty: 0, 0.
struct LineSpan {
  uint32_t first = 0, last = 0;
  bool empty() const { return last == 0; }
  bool meets(const LineSpan& other) const {
    return !empty() && !other.empty() && first <= other.last && other.first <= last;
  }
  bool operator==(const LineSpan&) const = default;
};

// What has names of its own: a module, a class, a function.
struct Scope {
  enum class Kind : uint8_t { module, klass, function };
  Kind kind = Kind::module;
  std::string name;                // "forward"; "" of the module
  uint32_t item = 0;               // of its definition in CodeFile::tree
  uint32_t parent = 0;             // index; the module is its own
  LineSpan lines;                  // with its decorators
  std::vector<std::string> bases;  // of a class: the last names of its bases
};

struct CodeFile {
  const SourceFile* source = nullptr;
  std::optional<Tree> tree;        // none: the grammar cannot read it
  std::vector<Scope> scopes;       // [0] is the module
  std::vector<uint32_t> scope_of;  // of each item: whose body runs it

  Node node(uint32_t item) const { return {tree->items().data(), item}; }
  std::string_view text(uint32_t item) const;
  LineSpan lines(uint32_t item) const;
  // The innermost scope that holds the line. A decorator is its function's.
  uint32_t scope_at(uint32_t line) const;
  // The class around a scope, itself if it is one; 0: none.
  uint32_t class_around(uint32_t scope) const;
  // "Attention.forward", as in Site::scope.
  std::string path_of(uint32_t scope) const;
  // The item of the expression that has exactly these ends, of several the outermost; none where
  // there is none.
  std::optional<uint32_t> expression_at(uint32_t line, uint32_t column, uint32_t end_line,
                                        uint32_t end_column) const;
  // The statement an item stands in.
  uint32_t statement_of(uint32_t item) const;
  // The lines of a statement; of a compound one those of its header alone.
  LineSpan statement_lines(uint32_t statement) const;
};

class Code {
 public:
  // Every file is parsed, on all cores. `sources` must outlive it.
  explicit Code(const SourceSet& sources);
  const std::vector<CodeFile>& files() const { return files_; }
  // The file with this absolute path; none: no source of this side.
  std::optional<uint32_t> find(const std::string& path) const;

 private:
  std::vector<CodeFile> files_;
  std::unordered_map<std::string, uint32_t> by_path_;
};

// A leaf of the tree that computes something: no comment, no part of a string that stands alone or
// of an annotation. A field of a class that is an annotation alone (of a dataclass) is code.
bool is_code(const CodeFile& file, uint32_t item);

bool is_statement(const Node& node);

inline bool is_self(std::string_view name) { return name == "self" || name == "cls"; }

// Names alone: `self.norm` -> "norm", `nn.Linear(8, 8)` -> "Linear".
std::string_view last_name(const CodeFile& file, Node node);

// Without its quotes, where it is a plain short string that may be a name: "--lr" -> "lr",
// "weight-decay" -> "weight_decay". Else "".
std::string name_in_string(const CodeFile& file, Node node);

}  // namespace opguard
