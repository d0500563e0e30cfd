// runtime/fingerprint/integers.h: an integer tensor as doubles, so that it can be sketched.
//
//   positions, int64 [2, 16]     its halves along the sequence are found again on two ranks
//   a mask, bool [2, 1, 16, 16]  ones and zeros
//
// Counterexample: integers beyond 2^53 are rounded; they are keys or hashes and no amounts.
// The cost: 8 bytes an element while it lasts. Tensors of more than 2^22 elements are left out.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/fingerprint/row_walk.h"

namespace opguard {

// In logical order. Empty for a type that is no integer's, and for a tensor that is too large.
std::vector<double> integers_as_doubles(const Elements& elements, std::string_view dtype);

// The same elements, contiguous, as float64.
Elements elements_of(const std::vector<double>& values, const std::vector<int64_t>& shape);

}  // namespace opguard
