// Names of kernels, cut to what a person compares.
//
//   _ZN12_GLOBAL__N_14fillEPf          (anonymous namespace)::fill
//   void a::k<(b::E)3>(int, float*)    a::k<(b::E)3>
//   triton_poi_fused_add_0             stays: it is no name of C++
//
// Counterexample: two instances of a template that differ in parameters alone. They have one name,
// and their counts add up.
//
// The cost: one demangling a name.
#include <string_view>

#include "llvm/Demangle/Demangle.h"
#include "plan/trace.h"

namespace opguard {
namespace {

constexpr size_t kMostBytes = 160;

// Without "(int, float*)" at the end; "(anonymous namespace)" and operator() stay.
// From the end back to the bracket that opens the last one: parameters may hold brackets of their
// own.
std::string_view without_parameters(std::string_view name) {
  if (name.empty() || name.back() != ')') return name;
  int depth = 0;
  for (size_t at = name.size(); at-- > 0;) {
    depth += name[at] == ')';
    depth -= name[at] == '(';
    if (depth == 0) return at == 0 ? name : name.substr(0, at);
  }
  return name;
}

// A template's name comes with its return type before it.
std::string_view without_return_type(std::string_view name) {
  int depth = 0;
  size_t start = 0;
  for (size_t at = 0; at < name.size(); ++at) {
    char c = name[at];
    depth += c == '<' || c == '(';
    depth -= c == '>' || c == ')';
    // The last blank outside of brackets: `unsigned long f<int>` has two before its name.
    if (c == ' ' && depth == 0) start = at + 1;
  }
  return name.substr(start);
}

}  // namespace

std::string kernel_name(const std::string& name) {
  std::string whole = llvm::demangle(name);
  std::string_view shown = whole;
  // A plain name may hold blanks and stays whole.
  if (whole != name || (!name.empty() && name.back() == ')'))
    shown = without_return_type(without_parameters(whole));
  if (shown.size() <= kMostBytes) return std::string(shown);
  size_t cut = kMostBytes - 3;
  // Not within a letter of UTF-8.
  while (cut > 0 && (static_cast<unsigned char>(shown[cut]) & 0xc0) == 0x80) --cut;
  return std::string(shown.substr(0, cut)) + "...";
}

}  // namespace opguard
