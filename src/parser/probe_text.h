// parser/probe_text.h: how a probe is written; the patcher writes it, the parser reads it back.
//
//   from opguard import og  # opguard: probes, isort: skip
//   y = og("attn.mul:a1", q) * k
//   loss = og.step("train.step:b2", opt.step)()
//   x = og.name("add:o5", x).iadd(y)                       was x += y
//
// Both sides read these constants, so a text that one writes is one that the other finds.
// Counterexample: a name of the user's that is `og` as well. The import line then binds `og_1`.
#pragma once

#include <string_view>

namespace opguard {

// Marks our import line; nothing else in a file tells that it carries probes.
inline constexpr std::string_view kImportMark = "# opguard: probes";
// Stands behind the mark. The line goes above every other import, so that all probes come after it;
// isort and ruff (I001) leave a line alone that says so. Earlier versions wrote the mark alone.
inline constexpr std::string_view kUnsorted = ", isort: skip";
// Between the two where `--comments` wrote comment lines: only then are such lines ours.
inline constexpr std::string_view kWithComments = ", comments";
// How such a line begins, behind its blanks.
inline constexpr std::string_view kCommentMark = "# opguard: ";
// What may stand before the first token of a line.
inline constexpr std::string_view kBlanks = " \t\f";
inline constexpr std::string_view kProbeName = "og";

// Behind `og`: what else the probe says; docs/design/architecture.md has their meaning.
inline constexpr std::string_view kVariants[] = {".writes", ".step", ".micro_batch"};
// Of an augmented name without a variant: where probes are the operands themselves
// (docs/design/compile.md), a name's needs the method all the same.
inline constexpr std::string_view kNameProbe = ".name";

struct AugmentMethod {
  std::string_view op, method;
};

// `x += y` as an expression on a probe: `x = og.name("id", x).iadd(y)`.
inline constexpr AugmentMethod kAugmentMethods[] = {
    {"+=", "iadd"},       {"-=", "isub"}, {"*=", "imul"},  {"@=", "imatmul"},  {"/=", "itruediv"},
    {"//=", "ifloordiv"}, {"%=", "imod"}, {"**=", "ipow"}, {"<<=", "ilshift"}, {">>=", "irshift"},
    {"&=", "iand"},       {"^=", "ixor"}, {"|=", "ior"}};

// "" when there is none.
constexpr std::string_view augment_method(std::string_view op) {
  for (const AugmentMethod& m : kAugmentMethods)
    if (m.op == op) return m.method;
  return {};
}
constexpr std::string_view augment_operator(std::string_view method) {
  for (const AugmentMethod& m : kAugmentMethods)
    if (m.method == method) return m.op;
  return {};
}

}  // namespace opguard
