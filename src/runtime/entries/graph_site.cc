// One text has all that a call in a compiled graph needs, since a graph takes constants alone.
//
//   1;417;model.mul:77ab;g;iself,iarg1,oout0;dim=#0
//   format; token; boundary; flags; names of slots, each behind the letter of its kind; texts
//
// Texts are pieces, literal and number in turn, parted by '#'. Sizes that are symbolic as the graph
// is made come as numbers when it runs. What would be a separator is written %3b.
//
// Counterexample: another format, as of a graph out of torch's cache. It is refused.
#include "runtime/entries/graph_site.h"

#include <cstdlib>

namespace opguard {
namespace {

constexpr std::string_view kFormat = "1";

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  if (text.empty()) return parts;
  for (;;) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

int hex(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 && hex(text[i + 2]) >= 0) {
      out += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<GraphSite::Piece> pieces_of(std::string_view text) {
  std::vector<GraphSite::Piece> pieces;
  std::vector<std::string_view> parts = split(text, '#');
  for (size_t i = 0; i < parts.size(); i += 2) {
    int number = i + 1 < parts.size() ? std::atoi(std::string(parts[i + 1]).c_str()) : -1;
    pieces.push_back({decoded(parts[i]), number});
  }
  return pieces;
}

}  // namespace

bool parse_graph_site(std::string_view text, GraphSite& site) {
  std::vector<std::string_view> fields = split(text, ';');
  if (fields.size() != 6 || fields[0] != kFormat) return false;
  site.token = std::strtoull(std::string(fields[1]).c_str(), nullptr, 10);
  site.boundary = decoded(fields[2]);
  site.flags = fields[3];
  site.names.clear();
  site.texts.clear();
  for (std::string_view name : split(fields[4], ',')) {
    if (name.empty()) return false;
    site.names.push_back({name[0], decoded(name.substr(1))});
  }
  for (std::string_view item : split(fields[5], '|')) site.texts.push_back(pieces_of(item));
  return true;
}

std::string graph_text(const std::vector<GraphSite::Piece>& pieces,
                       const std::vector<int64_t>& numbers) {
  std::string out;
  for (const GraphSite::Piece& piece : pieces) {
    out += piece.literal;
    if (piece.number >= 0)
      out += static_cast<size_t>(piece.number) < numbers.size()
                 ? std::to_string(numbers[static_cast<size_t>(piece.number)])
                 : "?";
  }
  return out;
}

}  // namespace opguard
