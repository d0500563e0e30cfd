// align/tolerance/helper_call.h: the call that is named in place of an operator in a helper.
//
//   update.py:66    whole = group.gather(w, 0)        this call is at fault,
//   groups.py:32        return torch.cat(parts, dim)  where the wrong tensor is made
//
// The helper did its work before, called from elsewhere, and no harm came of it. So what it is
// given here is in question. A function that runs no operator of its own passes on what it is
// given. Where several places call it, its caller is named.
//
// A helper's backward pass may leave parts of a gradient, which its callers add up. Where they do
// for other calls, and not for this one, the call is named too.
//
// Not named: the call of an operator that runs for the first time. Nor of a helper with one caller,
// or with none that came before. Nor of another node of a backward pass: other forward passes
// say nothing of it. A log has to tell who called: format 10 in the sketch mode does.
//
// Facts: the calls that each execution came by (record/call_stack.h), and where calls stand
// (record/calls.h). The cost: one pass over the candidate's events when the first is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "record/call_stack.h"
#include "record/event_ref.h"
#include "record/record.h"

namespace opguard {

class HelperCalls {
 public:
  explicit HelperCalls(const Run& run) : run_(run) {}

  // {}: the operator itself is named.
  std::optional<Location> of(const EventRef& event);
  // Of a node whose gradient ranks have parts of. Those of the helper's other calls are added up as
  // soon as they are made, and this one is not.
  std::optional<Location> of_parts(const EventRef& node);
  // The innermost call on the way to an event that stands in one of these functions (scopes).
  std::optional<Location> out_to(const EventRef& event, const std::set<std::string>& functions);
  // The call by which the way to one event parts from that to another, in a function that leads to
  // both. Of a layer's parameter and the head's it is the line of Model.__init__ for the layer.
  std::optional<Location> apart_from(const EventRef& event, const EventRef& other);

 private:
  struct Execution {
    uint32_t event = 0;
    uint32_t calls = kNone;  // string
  };
  void read();
  const std::vector<Caller>& callers(int32_t process, uint32_t string);
  // Where the call from that caller stands; of one that the preflight did not see its line alone.
  Location place(const Caller& caller, const std::string& callee) const;

  const Run& run_;
  bool read_ = false;
  std::map<std::pair<int32_t, uint32_t>, std::vector<Execution>> ran_;  // by process and boundary
  std::map<std::pair<int32_t, uint32_t>, std::vector<Caller>> known_;   // by process and string
  // Functions in which an operator ran, by path and scope.
  std::set<std::pair<std::string, std::string>> have_operators_;
};

}  // namespace opguard
