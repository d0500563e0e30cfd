#include "preflight/data_owner.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <string_view>

namespace opguard {
namespace {

constexpr std::string_view kNoTensors[] = {
    "object",
    "Module",
    "Dataset",
    "IterableDataset",
    "LightningModule",
    "LightningDataModule",
    "ABC",
    "Sampler",
    "Callback",
    "Enum",
    "NamedTuple",
    "Exception",
};

bool is_word(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0)
    text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0)
    text.remove_suffix(1);
  return text;
}

// Of `(nn.Module, Dataset):`, what stands behind a class's name.
bool holds_no_tensor(std::string_view behind) {
  behind = trimmed(behind);
  if (behind.starts_with(':')) return true;
  const size_t end = behind.find(')');
  if (!behind.starts_with('(') || end == std::string_view::npos) return false;
  std::string_view bases = trimmed(behind.substr(1, end - 1));
  while (!bases.empty()) {
    const size_t comma = bases.find(',');
    std::string_view base = trimmed(bases.substr(0, comma));
    base = base.substr(base.rfind('.') + 1);
    if (std::find(std::begin(kNoTensors), std::end(kNoTensors), base) == std::end(kNoTensors))
      return false;
    bases = comma == std::string_view::npos ? std::string_view() : trimmed(bases.substr(comma + 1));
  }
  return true;
}

}  // namespace

bool may_own_data(const Site& write, const std::string& text) {
  if (write.receiver != "self") return true;
  std::string_view scope = write.scope;
  const size_t method = scope.rfind('.');
  if (method == std::string_view::npos) return true;
  scope = scope.substr(0, method);
  const std::string_view name = scope.substr(scope.rfind('.') + 1);
  constexpr std::string_view kClass = "class ";
  bool found = false;
  for (size_t at = text.find(kClass); at != std::string::npos; at = text.find(kClass, at + 1)) {
    if (at > 0 && is_word(text[at - 1])) continue;
    std::string_view rest = trimmed(std::string_view(text).substr(at + kClass.size()));
    if (!rest.starts_with(name) || (rest.size() > name.size() && is_word(rest[name.size()])))
      continue;
    if (!holds_no_tensor(rest.substr(name.size()))) return true;
    found = true;
  }
  return !found;
}

}  // namespace opguard
