// suspects/definitions.h: which statements give a name its value.
//
//   lr = get_lr(it)              the name lr                group["lr"] = lr         the key lr
//   self.norm = nn.LayerNorm(8)  the attribute norm         SGD(p, lr=base_lr)       the keyword lr
//   momentum: float = 0.1        a field of its class       def f(x, eps=1e-6)       a parameter
//   add_argument("--lr", default=1e-3)                      a call that names it with other values
//   def get_lr(it): ...          what a call of it returns
//
// Nothing is run and no library is known by name: which of several gave the value is not said.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "record/calls.h"
#include "suspects/code.h"

namespace opguard {

struct Definition {
  enum class Kind : uint8_t { name, attribute, key, keyword, field, parameter, told, function };
  Kind kind = Kind::name;
  uint32_t file = 0;
  uint32_t item = 0;   // what is shown: the statement, or the part of a call
  uint32_t value = 0;  // the expression it comes from; 0: none
  uint32_t scope = 0;  // where it stands; of a function its own
};

// A name as it stands in an expression.
struct NameUse {
  std::string name;
  bool plain = false;  // a variable: looked up in the scopes around it; else an attribute or a key
  bool own = false;    // an attribute of `self`
  uint32_t file = 0, scope = 0;
  bool operator==(const NameUse&) const = default;
};

class Definitions {
 public:
  // seen: calls of a run. A function may be called by another name than its own (`step = fast if
  // foreach else slow; step(lr=lr)`); where it was seen to be called is then known all the same.
  explicit Definitions(const Code& code, const Calls& seen = {});

  std::vector<Definition> of(const NameUse& use) const;

  // The names in an expression, from left to right.
  std::vector<NameUse> uses_in(uint32_t file, uint32_t item) const;

  // What decides a definition's value besides its own expression: a function's returned values, and
  // the conditions it stands under.
  std::vector<uint32_t> decided_by(const Definition& definition) const;

 private:
  struct Call {
    uint32_t file, item;
    bool operator==(const Call&) const = default;
  };
  void read(const Calls& seen);
  void read(uint32_t file);
  void add_targets(uint32_t file, const Node& target, uint32_t item, uint32_t value);
  void add_arguments(const Definition& parameter, std::vector<Definition>& found) const;
  void add(const std::string& name, Definition definition);

  const Code& code_;
  std::unordered_map<std::string, std::vector<Definition>> by_name_;
  std::unordered_map<std::string, std::vector<Call>> calls_;  // by callee, and by names handed over
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Call>>
      seen_;  // by the function's file, scope
};

}  // namespace opguard
