// preflight/data_owner.h: whether the `self` of `self.data = v` may be a tensor.
//
// `p.data = v` puts other values into a parameter and dispatches nothing, so no trace tells of it.
// A data set keeps its numbers under the same name; there the line is no operator:
//
//   class Scale(nn.Parameter):        class Corpus(Dataset):
//       def put(self, v):                 def __init__(self):
//           self.data = v                     self.data = load()
#pragma once

#include <string>

#include "parser/site.h"

namespace opguard {

// False only where the class is written in the file and all its bases are known to hold no tensor
// as such. Examples: no base, nn.Module, Dataset. `text`: of the site's file.
bool may_own_data(const Site& write, const std::string& text);

}  // namespace opguard
