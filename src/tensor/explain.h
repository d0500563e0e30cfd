// tensor/explain.h: the explanations of compare.h, each group on its own. Both tensors have the
// same dtype and number of elements and differ.
#pragma once

#include <vector>

#include "tensor/compare.h"

namespace opguard {

// By the numbers: signed zeros, NaN, signs, casts, a factor, a filling.
void explain_values(const Tensor& a, const Tensor& b, const Difference& difference,
                    std::vector<Explanation>& out);

// By their places: the same elements in another order, rolled, shifted, transposed, reshaped.
void explain_places(const Tensor& a, const Tensor& b, std::vector<Explanation>& out);

}  // namespace opguard
