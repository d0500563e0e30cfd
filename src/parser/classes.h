// parser/classes.h: the classes of a file, what they derive from, and whose methods its functions
// are.
//
//   class Scale(nn.Parameter):        class 0: Scale, bases nn.Parameter
//       def put(self, v):             a method of class 0; its receiver is self
//           def again(): ...          no method: its first parameter is nobody's instance
//
// Whoever asks what `self` is at a place takes the innermost function around it. Counterexample:
// two classes may have one name (`if old: class A: ...`, `else: class A: ...`); places tell them
// apart, names do not.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/source.h"

namespace opguard {

struct Class {
  std::string name;
  std::vector<std::string> bases;  // as written, on one line: "nn.Module", "metaclass=Meta", "*b"
  bool operator==(const Class&) const = default;
};

struct FunctionBody {
  uint32_t start = 0, end = 0;    // byte offsets of the whole definition, decorators left out
  std::optional<uint32_t> owner;  // of a method, whose class it is: index in Classes::classes
  std::string receiver;           // of a method, its first parameter; "" of a static one
  bool operator==(const FunctionBody&) const = default;
};

struct Classes {
  std::vector<Class> classes;           // in order of source, an outer one before its inner ones
  std::vector<FunctionBody> functions;  // likewise
};

// Empty for a text that is not Python. Positions are those of the sites: of without_probes().
Classes read_classes(const SourceFile& source);

// The innermost function around a byte; null outside of all.
const FunctionBody* function_around(const Classes& classes, uint32_t offset);

}  // namespace opguard
