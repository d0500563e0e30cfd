// suspects/bindings.h: the variables and the attributes of `self` that a file names, by their
// places.
//
//   class Net(nn.Module):
//       def __init__(self, width):            the variable width, made
//           self.up = nn.Linear(8, width)     the attribute up of Net, made; the variables nn,
//           width
//       def forward(self, x):                 the attribute forward of Net, made
//           return self.up(x)                 the attribute up of Net
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "suspects/code.h"
#include "suspects/words.h"

namespace opguard {

// An occurrence of a variable's name. What a class body makes is an attribute.
struct Variable {
  uint32_t start, end;  // bytes of the file
  std::string_view name;
  bool made;       // it is given a value here
  bool defined;    // by `def` or `class`, here
  bool parameter;  // of a function, here
};

// An occurrence of an attribute of `self` or `cls`.
struct Member {
  uint32_t start;
  // `klass`: "" outside of any class.
  std::string_view klass, name;
  bool made;
};

// The file must stay.
class Bindings {
 public:
  explicit Bindings(const CodeFile& file);

  // Those of these lines, in their order.
  std::span<const Variable> variables(const LineSpan& lines) const;
  std::span<const Member> members(const LineSpan& lines) const;
  // The class names it anywhere.
  bool has_member(std::string_view klass, std::string_view name) const;

 private:
  const SourceFile* source_;
  std::vector<Variable> variables_;
  std::vector<Member> members_;
  std::map<std::string_view, Words> of_class_;
};

// Of both sides' files.
using FileBindings = std::map<const SourceFile*, Bindings>;

}  // namespace opguard
