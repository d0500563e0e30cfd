#include "matcher/renames.h"

#include <array>
#include <cctype>
#include <set>
#include <string_view>

namespace opguard {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Calls use(token, is_name) for each token of an expression's text; a name is an identifier that is
// no attribute, keyword or number.
template <typename Use>
void each_token(std::string_view text, Use use) {
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    if (is_word(text[i]))
      while (end < text.size() && is_word(text[end])) ++end;
    std::string_view token = text.substr(i, end - i);
    bool name = is_word(text[i]) && !std::isdigit(static_cast<unsigned char>(text[i])) &&
                (i == 0 || text[i - 1] != '.') &&
                (end == text.size() || text[end] != '=' || text.substr(end, 2) == "==");
    use(token, name);
    i = end;
  }
}

// The variable part of an argument's shape: "x" of "name:x" and "keyword:dim=name:x".
std::string_view variables_of(std::string_view shape) {
  if (shape.substr(0, 8) == "keyword:")
    shape.remove_prefix(std::min(shape.find('=') + 1, shape.size()));
  for (std::string_view kind :
       {"name:", "attribute:", "call:", "subscript:", "splat:", "list:", "tuple:"})
    if (shape.substr(0, kind.size()) == kind) return shape.substr(kind.size());
  return {};
}

// Every text of a site that holds variables, always in the same order.
template <typename Use>
void each_text(const Site& site, Use use) {
  use(site.receiver);
  if (site.form == Form::call && site.receiver.empty()) use(site.callee);
  for (const std::string& target : site.targets) use(target);
  for (const std::string& argument : site.arguments) use(variables_of(argument));
}

using Names = std::set<std::string, std::less<>>;

Names names_of(const Side& side, const std::vector<uint32_t>& sites) {
  Names names;
  for (uint32_t i : sites)
    each_text(side.site(i), [&](std::string_view text) {
      each_token(text, [&](std::string_view token, bool name) {
        if (name) names.emplace(token);
      });
    });
  return names;
}

struct Token {
  std::string_view text;
  bool name;
};

std::vector<Token> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  each_token(text, [&](std::string_view token, bool name) { tokens.push_back({token, name}); });
  return tokens;
}

}  // namespace

Renames find_renames(const Side& olds, const std::vector<uint32_t>& a, const Side& news,
                     const std::vector<uint32_t>& b,
                     const std::vector<std::pair<size_t, size_t>>& pairs) {
  const Names before = names_of(olds, a), after = names_of(news, b);
  std::map<std::pair<std::string_view, std::string_view>, size_t> votes;
  std::map<std::string_view, size_t> of_old, of_new;
  // Token by token. One token that differs and is no name on both sides makes them different
  // expressions, which tell nothing.
  auto compare = [&](std::string_view x, std::string_view y) {
    if (x == y) return;
    std::vector<Token> old_tokens = tokens_of(x), new_tokens = tokens_of(y);
    if (old_tokens.size() != new_tokens.size()) return;
    for (size_t k = 0; k < old_tokens.size(); ++k)
      if (old_tokens[k].text != new_tokens[k].text && !(old_tokens[k].name && new_tokens[k].name))
        return;
    for (size_t k = 0; k < old_tokens.size(); ++k) {
      std::string_view from = old_tokens[k].text, to = new_tokens[k].text;
      if (from == to || after.count(from) || before.count(to)) continue;
      ++votes[{from, to}];
      ++of_old[from];
      ++of_new[to];
    }
  };
  for (auto [i, j] : pairs) {
    const Site &x = olds.site(a[i]), &y = news.site(b[j]);
    compare(x.receiver, y.receiver);
    if (x.form == Form::call && x.receiver.empty() && y.receiver.empty())
      compare(x.callee, y.callee);
    if (x.targets.size() == y.targets.size())
      for (size_t k = 0; k < x.targets.size(); ++k) compare(x.targets[k], y.targets[k]);
    if (x.arguments.size() == y.arguments.size())
      for (size_t k = 0; k < x.arguments.size(); ++k)
        compare(variables_of(x.arguments[k]), variables_of(y.arguments[k]));
  }
  Renames renames;
  for (const auto& [names, count] : votes)
    if (2 * count > of_old[names.first] && 2 * count > of_new[names.second])
      renames.emplace(names.first, names.second);
  return renames;
}

// "callee:" and "name:" hold a variable only where the callee is a bare name; a method's new name
// is looked for as ".name".
std::string renamed_tag(const std::string& tag, bool bare, const Renames& renames) {
  std::string_view text = tag;
  size_t payload = 0;
  for (std::string_view prefix :
       {"receiver:", "root:", "target:", "block:", "header:", "holds:", "argument:list:",
        "argument:tuple:", "argument:name:", "argument:attribute:", "argument:call:",
        "argument:subscript:", "argument:splat:"})
    if (text.substr(0, prefix.size()) == prefix) payload = prefix.size();
  if (bare)
    for (std::string_view prefix : {"callee:", "name:"})
      if (text.substr(0, prefix.size()) == prefix) payload = prefix.size();
  if (!bare)
    for (std::string_view prefix : {"callee:", "name:"})
      if (text.substr(0, prefix.size()) == prefix) {
        const size_t dot = std::max(text.rfind('.') + 1, prefix.size());
        auto found = renames.find("." + std::string(text.substr(dot)));
        if (found != renames.end()) return std::string(text.substr(0, dot)) + found->second;
      }
  if (payload == 0) return tag;
  std::string out = tag.substr(0, payload);
  each_token(text.substr(payload), [&](std::string_view token, bool name) {
    auto found = name ? renames.find(token) : renames.end();
    out += found == renames.end() ? token : std::string_view(found->second);
  });
  return out;
}

}  // namespace opguard
