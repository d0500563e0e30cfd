// determinism/facts.h: what a program was seen to do about its determinism, process by process, as
// python/opguard/observe wrote it: one facts-<pid>.json each.
//
//   {"facts": 1, "pid": 71, "child": false, "rank": 0, "steps": 3,
//    "draws": [{"generator": "numpy", "call": "rand", "place": {"file": "/t/train.py", "line": 9,
//               "function": "augment", "text": "x += np.random.rand()"}, "times": 12, "step": 0}],
//    "values": {"switches_at_end": {"cudnn.benchmark": "True"}}}
//
// Facts carry no opinion: judge.h has it. Counterexample: "unseeded" is none of them. A draw is
// noted while its generator has no seed, and that is all the fact says.
//
// The program may write what it likes into this folder. What is of another form is left out. A file
// that is no JSON is an error that names it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llvm/Support/Error.h"
#include "nlohmann/json.hpp"

namespace opguard {

// A place in the program's own source.
struct CallSite {
  std::string file, function, text;  // text: the line
  uint32_t line = 0;
  std::string through;  // the library that was called there, "" if none
  bool known() const { return line > 0; }
  bool operator==(const CallSite&) const = default;
};

// A list's entry: {"call": "rand", "place": {...}, "times": 12}.
struct Fact {
  nlohmann::json fields;
  std::string text(const char* key) const;  // "" where it is not there
  // True as well where it is not there.
  bool is_null(const char* key) const;
  // 0 where it is no whole number; flag(): false where it is no boolean.
  int64_t number(const char* key) const;
  bool flag(const char* key) const;
  std::vector<std::string> texts(const char* key) const;
  std::vector<int64_t> numbers(const char* key) const;
  std::vector<Fact> facts(const char* key) const;
  CallSite place() const;
};

using TextMap = std::map<std::string, std::string>;

struct ProcessFacts {
  // `steps`: of training, that are over.
  int64_t pid = 0, parent = 0, rank = 0, steps = 0;
  bool child = false;  // made by a fork or by multiprocessing: a loader's worker
  Fact values;         // by name, as the process ended
  // By kind: "draws", "seeds", "sets", "loaded" ...
  std::map<std::string, std::vector<Fact>> lists;
  const std::vector<Fact>& list(const std::string& kind) const;
  TextMap map(const char* name) const;  // of `values`
};

struct RunFacts {
  std::vector<ProcessFacts> processes;
  // Those that trained, by rank; where none did, those that are no helpers. They point into
  // `processes`.
  std::vector<const ProcessFacts*> trained() const;
  // Children that ended no step: loaders' workers.
  std::vector<const ProcessFacts*> helpers() const;
  uint64_t steps() const;
};

// The facts of a folder. Error: a file is no JSON.
llvm::Expected<RunFacts> read_facts(const std::string& folder);
// One file's. Error if it is no object of this version.
llvm::Expected<ProcessFacts> parse_facts(const std::string& text, const std::string& name);

}  // namespace opguard
