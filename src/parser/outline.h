// parser/outline.h: what the scopes of a file hold, told from its tree at less cost than their
// sites.
//
//   wanted words: rotate, softmax
//   Attention.forward    rotate 1, softmax 1, at least 12 sites      may hold a lost boundary
//   Cache.update         none                                        its sites are never made
//
// The matcher asks this of every file of a tree that it searches. Counterexample: a count is no
// match: a word may be a variable's name. It says only what cannot be there.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace opguard {

class Tree;

// Identifiers and operator tokens ("+", "<=", "*=", "[" of a subscript) that are asked for.
class Words {
 public:
  uint32_t add(std::string_view word);
  std::optional<uint32_t> find(std::string_view word) const;
  size_t size() const { return positions_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  std::unordered_map<std::string, uint32_t, Hash, std::equal_to<>> positions_;
};

struct Outline {
  std::string scope;            // Site::scope
  uint32_t least = 0;           // it has no fewer sites: calls and binary operators
  std::vector<uint32_t> count;  // of each word; what a site is made of stands in its scope
};

using ScopeNames = std::set<std::string, std::less<>>;
// Which scopes of a file matter.
using ChooseScopes = std::function<ScopeNames(const std::vector<Outline>&)>;

std::vector<Outline> outlines(const Tree& tree, std::string_view text, const Words& words);

}  // namespace opguard
