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
    if (fact.text("name") != name || fact.text("value") == found.value) continue;
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
