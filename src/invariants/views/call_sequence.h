// invariants/views/call_sequence.h: which call of the library came after which.
//
//   zero_grad, forward, backward, step, zero_grad, forward, backward, step
//   row of the second backward: name=backward since_step:zero_grad=yes since_last:step=yes ...
//   one without zero_grad:      name=backward since_step:zero_grad=no
//
// Of every call three questions are asked of each other name. Was it called since the last call of
// this one? Since the last step of an optimizer? Ever before?
//
// The cost: three sets of bits for each name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "invariants/view.h"
#include "invariants/views/row_maker.h"

namespace opguard {

class CallSequence {
 public:
  struct Call {
    std::string_view name, type{}, place{};
    std::optional<bool> training{}, grad{};
    bool several = false;  // more than one optimizer has stepped
  };
  void add(const RowContext& context, const Call& call);
  bool ever(std::string_view name) const;
  bool since_step(std::string_view name) const;

 private:
  static constexpr size_t kMostNames = 24;
  std::array<uint32_t, kMostNames> since_last_{};
  uint32_t since_step_ = 0, ever_ = 0;
};

}  // namespace opguard
