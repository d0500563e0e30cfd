// session/prove_plan.h: `opguard prove plan.py`: the plan's ranks and its model are captured by
// Python, and proved equal here.
//
//   capture    python/opguard/prove: a step of the model and of each rank, as JSON
//   check      both as terms (src/prove): proved, refuted with numbers, or unknown and why
//   report     text, JSON, HTML, SARIF; of a refutation also a program (prove_replay.h)
//
// Counterexample: a proof at reduced dims, of a plan that is another program at its full ones. The
// verdict is then `unknown`, and the difference is told.
#pragma once

#include <optional>
#include <string>

#include "prove/grants.h"

namespace opguard {

struct ProvePlanOptions {
  std::string plan;  // a Python file with logical(), plan() and WORLD
  std::string python = "python3";
  std::string dims;                 // "hidden=16,heads=8": other than the file's
  std::optional<std::string> full;  // compare with these dims; "": with the plan's FULL
  std::string work;                 // keep the captured files in this new folder
  std::string captured;             // a folder that --work has kept: nothing is captured
  proving::Grants grants;           // what the user takes upon himself
  std::string json, html, sarif;
  std::string replay;  // write a refutation as a program into this new folder
  std::string solver;  // libz3's path; "": where the loader finds it; "none": none is asked
};

// `opguard prove --rules`: each operator's meaning against torch's own, and the terms' algebra by
// the solver, where there is one. 0, or 1 where one differs or is refuted.
int prove_rules(const ProvePlanOptions& options);

// 0 proved, 1 refuted, 2 unknown, 3 bad input.
int prove_plan(const ProvePlanOptions& options);

}  // namespace opguard
