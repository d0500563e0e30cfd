// A comparison in lines for people. Only what is known is said.
//
//   differ: 1 of 2 tensors
//     a good.safetensors
//     b bad.safetensors
//     out0  float32[4, 8]: 8 of 32 elements differ
//       first at [2, 0]: a 0.5, b 0.25
//       max ulp 8,388,608, max absolute 0.25, max relative 0.5
//       slices of each dim with a difference: 1 of 4, 8 of 8
//       block: they differ only in index 2 of dim 0
//     out1  int64[4]: equal
//
// Counterexample: a maximum of 0 where none was measured. NaN against a number has no distance, so
// such a line is left out.
#include <cstdio>

#include "tensor/compare.h"
#include "tensor/safetensors_header.h"

namespace opguard {
namespace {

std::string list(const std::vector<int64_t>& numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i) text += (i ? ", " : "") + std::to_string(numbers[i]);
  return text + "]";
}

std::string short_number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

// As support/text.h has it, which this room does not use.
std::string grouped(uint64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string facts(const Difference& d) {
  std::string text;
  auto add = [&](const std::string& fact) { text += (text.empty() ? "" : ", ") + fact; };
  if (d.max_ulp) add("max ulp " + grouped(*d.max_ulp));
  if (d.max_absolute) add("max absolute " + short_number(*d.max_absolute));
  if (d.max_relative) add("max relative " + short_number(*d.max_relative));
  if (d.nan_a) add(grouped(d.nan_a) + " NaN only in a");
  if (d.nan_b) add(grouped(d.nan_b) + " NaN only in b");
  if (d.infinite) add(grouped(d.infinite) + " infinite in one");
  if (d.signed_zeros) add(grouped(d.signed_zeros) + " zeros of other sign");
  return text;
}

}  // namespace

std::string format_difference(const Difference& d) {
  std::string text = "  " + printable(d.name) + "  " + d.dtype_a + list(d.shape_a);
  if (d.equal) return text + ": equal\n";
  if (d.dtype_a != d.dtype_b || d.shape_a != d.shape_b)
    text += " against " + d.dtype_b + list(d.shape_b);
  if (!d.elementwise) {
    text += ": the shapes differ\n";
  } else if (d.differing == 0) {
    text += ": the dtypes differ\n";
  } else {
    text += ": " + grouped(d.differing) + " of " + grouped(d.elements) + " elements differ\n";
    text += "    first at " + list(d.first) + ": a " + d.first_a + ", b " + d.first_b + "\n";
    if (std::string f = facts(d); !f.empty()) text += "    " + f + "\n";
    std::string slices;
    for (size_t i = 0; i < d.slices.size(); ++i)
      if (d.slices[i] >= 0)
        slices += (slices.empty() ? "" : ", ") + grouped(static_cast<uint64_t>(d.slices[i])) +
                  " of " + grouped(static_cast<uint64_t>(d.shape_a[i]));
    if (d.slices.size() > 1) text += "    slices of each dim with a difference: " + slices + "\n";
  }
  for (const Explanation& e : d.explanations) text += "    " + e.kind + ": " + e.text + "\n";
  return text;
}

std::string format_comparison(const FileComparison& comparison, const std::string& a,
                              const std::string& b) {
  uint64_t differ = 0;
  for (const Difference& d : comparison.tensors) differ += !d.equal;
  std::string text;
  if (comparison.equal())
    text = "equal: " + std::to_string(comparison.tensors.size()) + " tensors\n";
  else
    text = "differ: " + std::to_string(differ) + " of " +
           std::to_string(comparison.tensors.size()) + " tensors\n";
  text += "  a " + a + "\n  b " + b + "\n";
  for (const Difference& d : comparison.tensors) text += format_difference(d);
  for (const std::string& name : comparison.only_a)
    text += "  " + printable(name) + ": only in a\n";
  for (const std::string& name : comparison.only_b)
    text += "  " + printable(name) + ": only in b\n";
  return text;
}

}  // namespace opguard
