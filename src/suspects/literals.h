// suspects/literals.h: numbers that stand in the text, and the numbers of a candidate that differ.
//
//   a  def learn(self, batch_size=100):      reads float32[100, 4]
//   b  def learn(self, batch_size=256):      reads float32[256, 4]
//
// No name leads from a shape to who chose it. A line in which the one number became the other may
// be it; a run tells (docs/design/proof.md).
#pragma once

#include <string>
#include <vector>

#include "align/judge/pivot_view.h"
#include "suspects/suspects.h"

namespace opguard {

// Sizes of tensors that the candidate has in both runs under one name: "arg0.shape[0]" with the
// values 100 and 256. Each two values once.
std::vector<Number> differing_sizes(const PivotView& both);

// One text has the number's value in a where the other has its value in b, as numbers: 1e-3 is
// 0.001. Neither has the other's as often.
bool gives(const std::string& text_a, const std::string& text_b, const Number& number);

}  // namespace opguard
