#include "preflight/ids.h"

#include <array>
#include <cctype>
#include <string_view>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/SHA256.h"
#include "matcher/operator_names.h"

namespace opguard {
namespace {

std::string id_word(std::string_view text) {
  std::string out;
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    bool word = u < 0x80 && (std::isalnum(u) || c == '_');
    out += word ? static_cast<char>(std::tolower(u)) : '_';
  }
  return out;
}

// An argument's shape without what a new default or one more element changes: of keywords, lists
// and tuples the kind.
std::string steady_shape(const std::string& argument) {
  size_t from = 0;
  if (argument.rfind("keyword:", 0) == 0) from = argument.find('=') + 1;
  size_t colon = argument.find(':', from);
  bool whole = from == 0 && argument.rfind("list:", 0) != 0 && argument.rfind("tuple:", 0) != 0;
  return whole ? argument : argument.substr(0, colon);
}

}  // namespace

std::string label_of(const Site& site) {
  std::string_view name = site.file;
  auto base = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
  std::string_view stem = base(name);
  stem = stem.substr(0, stem.find('.'));
  size_t slash = name.rfind('/');
  if (stem == "__init__" && slash != std::string_view::npos) stem = base(name.substr(0, slash));
  return id_word(stem) + "." + id_word(operator_name(site));
}

std::string identity_of(const Site& site) {
  std::string text = std::string(form_name(site.form)) + "\n" + site.callee + "\n";
  for (const std::string& argument : site.arguments) text += steady_shape(argument) + ",";
  return text + "\n" + site.scope + "\n" + site.package + "\n" + site.file;
}

std::string hash_letters(const std::string& text) {
  std::array<uint8_t, 32> digest = llvm::SHA256::hash(
      llvm::ArrayRef<uint8_t>(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
  std::string out;
  uint32_t bits = 0, count = 0;
  for (uint8_t byte : digest) {
    bits = (bits << 8 | byte) & 0xffff;
    for (count += 8; count >= 5; count -= 5)
      out += "abcdefghijklmnopqrstuvwxyz234567"[bits >> (count - 5) & 31];
  }
  return out;
}

}  // namespace opguard
