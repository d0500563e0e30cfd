// invariants/builtin.h: the rules that come with the tool.
//
// hypotheses.json is written by hand. `bench/invariants.py --builtin` looks at those rules in
// programs that may be learned from, and writes builtin.json with the evidence.
#pragma once

#include <string_view>

namespace opguard {

std::string_view builtin_rules();     // JSON, as a file of `opguard infer`
std::string_view hypotheses_rules();  // the same, without evidence

}  // namespace opguard
