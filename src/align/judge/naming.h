// align/judge/naming.h: from what was found to a candidate: its kind, where it is better named, and
// why it is one.
#pragma once

#include <vector>

#include "align/judge/blame.h"
#include "align/judge/evidence.h"
#include "align/judge/generator_writes.h"
#include "align/judge/leads.h"
#include "align/judge/verdict.h"

namespace opguard {

// In a word.
Reason why(const Evidence& evidence, const Blame& blame, const Pivot& pivot);

// A lead as a candidate. What the other run did instead, where only one has such an operator: its
// own first lead with no equal pair between.
Pivot name(const Evidence& evidence, const Blame& blame, const Lead& lead,
           const std::vector<Lead>& leads);

// What moved a generator in one run only.
Pivot name(const Evidence& evidence, const Blame& blame, const GeneratorWrite& write);

// Adds what is not among them already, up to the most that are named. No pair that is equal.
void add(const Evidence& evidence, Pivot pivot, std::vector<Pivot>& candidates);

}  // namespace opguard
