// report/tensor_json.h: how two tensors differ, as docs/formats/tensors.md has it ("--json").
#pragma once

#include "nlohmann/json.hpp"
#include "tensor/compare.h"

namespace opguard {

nlohmann::ordered_json difference_json(const Difference& difference);

}  // namespace opguard
