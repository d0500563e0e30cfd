#include "preflight/ids.h"

#include <array>
#include <cctype>
#include <string_view>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/SHA256.h"
#include "matcher/operator_names.h"

namespace opguard {
namespace {

// "MyModel-2" is "mymodel_2".
std::string id_word(std::string_view text) {
  std::string out;
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    bool word = u < 0x80 && (std::isalnum(u) || c == '_');
    out += word ? static_cast<char>(std::tolower(u)) : '_';
  }
  return out;
}

// A long word up to its last '_' that leaves it short: "convert_slow_tokenizer" of
// "convert_slow_tokenizers_checkpoints".
std::string shortened(std::string word) {
  constexpr size_t kMost = 24;
  if (word.size() <= kMost) return word;
  const size_t parted = word.rfind('_', kMost);
  const bool worth = parted != std::string::npos && parted >= kMost / 2;
  return word.substr(0, worth ? parted : kMost);
}

// What the operator is called where a probe stands, so that `og("...", operand)` tells what is done
// with the operand. It is operator_name(), which matching compares, and what that leaves open.
std::string spoken_name(const Site& site) {
  std::string name = operator_name(site);
  if (site.form == Form::iterate && site.callee == kUnpack) return kUnpack;
  if (site.form == Form::write) return "set_" + name;
  if (name.starts_with('@')) return name.substr(1);
  return name;
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
  const bool of_package = stem == "__init__" || stem == "__main__";
  if (of_package && slash != std::string_view::npos) stem = base(name.substr(0, slash));
  return shortened(id_word(stem)) + "." + shortened(id_word(spoken_name(site)));
}

// Neither line nor order nor the operand's text: those change with edits elsewhere.
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
  // Five bits a letter; 256 bits give 51 letters, and one bit is left over.
  for (uint8_t byte : digest) {
    bits = (bits << 8 | byte) & 0xffff;
    for (count += 8; count >= 5; count -= 5)
      out += "abcdefghijklmnopqrstuvwxyz234567"[bits >> (count - 5) & 31];
  }
  return out;
}

}  // namespace opguard
