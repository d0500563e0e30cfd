// tensor/explain.h: the explanations of compare.h, each group on its own. Both tensors have the
// same dtype and number of elements and differ.
//
//   by values    b[i] is computed of a[i], for every i          -a, a * 0.5, a through bfloat16
//   by places    b[i] is a[j], for every i and some order       rolled, transposed, permuted
//
// Several may hold at once, and all of them are told: [1, 1] and [-1, -1] differ by their sign, and
// b is -1 throughout. Counterexample: the two groups combined. What is rolled and scaled is
// neither.
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
