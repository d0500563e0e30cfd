// Three sources tell of a variable, and the later one wins.
//
//   environment at the start   NCCL_ALGO=Ring              set, by the user
//   control                    env.NCCL_PROTO              set, by opguard's control
//   os.environ in the program  NCCL_ALGO=Tree, late        too_late: the group read it before
//
// Counterexample: a program that sets the value which is there already. Nothing has changed, and
// the setter stays.
#include "determinism/variables.h"

namespace opguard {

Finding variable_finding(const ProcessFacts& process, Surface surface, const std::string& name) {
  Finding found;
  found.surface = surface;
  found.subject = Subject::variable;
  found.name = name;
  const TextMap start = process.map("environment"), control = process.map("control");
  if (const auto at = start.find(name); at != start.end()) {
    found.value = at->second;
    found.hold = Hold::controlled;
    found.ground = Ground::set;
    found.by = control.contains("env." + name) ? SetBy::control : SetBy::environment;
  }
  for (const Fact& fact : process.list("variables")) {
    // The last setting decides.
    if (fact.text("name") != name || fact.text("value") == found.value) continue;
    // What reads it was there when it was set: CUDA, the process group, Inductor's configuration,
    // Python itself.
    if (fact.flag("late")) {
      found.hold = Hold::violated;
      found.ground = Ground::too_late;
    } else {
      found.hold = Hold::controlled;
      found.ground = Ground::set;
    }
    found.value = fact.text("value");
    found.by = SetBy::code;
    found.place = fact.place();
  }
  return found;
}

}  // namespace opguard
