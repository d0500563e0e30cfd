// suspects/signatures.h: functions whose parameters differ between two programs, and calls that fit
// one of them alone.
//
//   a  def pairs(self, size, x, y):     b  def pairs(self, x, y):
//      self.pairs(n, x, y)                 self.pairs(x, y)
//
// Either line taken back alone, the call fails or hands over something else.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "suspects/code.h"

namespace opguard {

struct Signature {
  std::string path;  // "Net.forward", as Site::scope
  std::string name;  // by which it is called: "forward"; of `__init__` its class's
  std::vector<std::string> positional, keyword_only;  // without self
  size_t required = 0;                                // of the positional, without defaults
  bool rest = false, keywords = false;                // *args, **kwargs
  LineSpan lines;                                     // of its parameters
};

struct CallShape {
  std::string name;  // the last of its callee's; of `super().__init__` the class's first base
  size_t positional = 0;
  std::vector<std::string> keywords;
  bool open = false;  // *args or **kwargs are handed over: nothing can be said
  LineSpan lines;
};

std::vector<Signature> signatures_of(const CodeFile& file);
// Calls whose callee has a name; `f()()` has the name f.
std::vector<CallShape> calls_of(const CodeFile& file);

// The call hands over to `own` what `other` would not take as that.
bool needs(const CallShape& call, const Signature& own, const Signature& other);

}  // namespace opguard
