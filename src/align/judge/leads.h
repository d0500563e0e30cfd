// align/judge/leads.h: the places at which the runs may part, the likeliest first.
//
// What only one run has, or does otherwise, between pairs that agree is a *region* of each side. It
// has values that enter it and values that leave. Both sides' stretches that the same reader waits
// for are one region:
//
//   a   scores = q @ k      scores += mask      probs = softmax(scores)   \ read by proj, which
//   b   out = sdpa(q, k, v)                                               / both runs have
//
// Here (`q @ k`, `sdpa`) is where they part: the first operators of the two stretches that read the
// same value. What built the mask read none of them; it stands behind.
#pragma once

#include <array>
#include <vector>

#include "align/judge/walk_back.h"

namespace opguard {

// How likely a lead is the cause; less is likelier.
enum class Grade : uint8_t {
  main,
  inherits,  // a region that reads a difference: that one came first
  prepares,  // a region's operator that reads nothing the other side's stretch reads
  echo,      // its partner reads what only the other run holds
};

struct Lead {
  Position position;
  Grade grade = Grade::main;
  EventRef refs[2];  // of a, of b; at least one
  Found found;       // the side and the value where the walk ended
  Heuristics by;     // what it was chosen by

  bool one_sided() const { return refs[0].process < 0 || refs[1].process < 0 || region; }
  bool region = false;  // refs are no partners: the first operators of two stretches
  std::array<std::vector<EventRef>, 2> steps{};  // of the region: its operators, by event
};

std::vector<Lead> order_leads(const Evidence& evidence, const Walk& walk);

}  // namespace opguard
