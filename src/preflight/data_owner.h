// preflight/data_owner.h: whether the `self` of `self.data = v` may be a tensor.
//
// `p.data = v` puts other values into a parameter and dispatches nothing, so no trace tells of it.
// A data set keeps its numbers under the same name; there the line is no operator:
//
//   class Scale(nn.Parameter):        class Corpus(Dataset):
//       def put(self, v):                 def __init__(self):
//           self.data = v                     self.data = load()
//
// A class of the file that derives from another one hands its methods on. So a class may hold no
// tensor itself, and its `self` be one:
//
//   class Put:                        class Scale(Put, nn.Parameter): ...
//       def put(self, v):
//           self.data = v             # a Scale's, too
//
// Classes of other files that derive from it are not looked for.
#pragma once

#include "parser/classes.h"
#include "parser/site.h"

namespace opguard {

// False only where the write's receiver is that of a method whose class holds no tensor as such. Nor
// may any class that derives from it. All bases are known not to (none at all, nn.Module,
// Dataset, ...) or are such classes of the file. `in`: of the write's file.
bool may_own_data(const Site& write, const Classes& in);

}  // namespace opguard
