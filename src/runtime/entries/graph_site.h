// runtime/entries/graph_site.h: the constant text by which an operator of a compiled graph tells
// its site (python/opguard/compiled/ops.py writes it).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace opguard {

// "1;<token>;<boundary>;<flags>;<names>;<texts>", percent-encoded between the separators.
struct GraphSite {
  // A slot: one character of its kind (i in, o out, w written), then its name.
  struct Name {
    char kind = 'i';
    std::string text;
    bool operator==(const Name&) const = default;
  };
  // Literal text and, after it, the number of a symbolic integer; -1: none.
  struct Piece {
    std::string literal;
    int number = -1;
    bool operator==(const Piece&) const = default;
  };
  uint64_t token = 0;
  std::string boundary;
  // A letter each: g in graph, b in backward, c collective, m ends a micro-batch, s ends a step.
  // Of the operator: n new history, r raised, u uninitialised result, w writes behind the version
  // counters.
  std::string flags;
  std::vector<Name> names;
  std::vector<std::vector<Piece>> texts;

  bool has(char flag) const { return flags.find(flag) != std::string::npos; }
  bool operator==(const GraphSite&) const = default;
};

// False where the text is of another format.
bool parse_graph_site(std::string_view text, GraphSite& site);

// "name=3": the numbers in their places, long values cut as Collector cuts them.
std::string graph_text(const std::vector<GraphSite::Piece>& pieces,
                       const std::vector<int64_t>& numbers);

}  // namespace opguard
