// operators/drawing_words.h: whether a name says, by its words, that it draws random numbers.
//
// For names that operators.txt does not have, of other libraries and of programs: `sample_actions`,
// `DropPath`, `gaussian_noise` do; `downsample`, `grid_sampler`, `add_noise` do not. A name is all
// there is: one that says nothing (`augment`) is seen by the preflight alone.
#pragma once

#include <string_view>

namespace opguard {

bool words_say_draw(std::string_view name);

}  // namespace opguard
