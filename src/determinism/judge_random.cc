// Generators: which are seeded, by whom, with what; who draws without.
//
//   random.shuffle(rows)                  no seed before: drawn_unseeded, in train.py:8
//   torch.manual_seed(int(time.time()))   1732650000, in the second run 1732650004: seed_differs
//   numpy.random.seed()                   seeded_by_system
//   torch.manual_seed(1) in each step     seeded_again: its numbers repeat
//   torch.manual_seed(1) at the start     controlled, seeded with 1
//
// Counterexample: a seed of a later step with a number that is new. Whoever seeds each epoch with
// its number does so on purpose, and two runs agree.
//
// The cost: facts are compared pair by pair; there are few of each kind.
#include <algorithm>
#include <set>

#include "determinism/judge.h"
#include "determinism/variables.h"

namespace opguard {
namespace {

constexpr const char* kGenerators[] = {"python", "numpy", "torch"};

// In the order in which they were seen.
std::vector<Fact> seeds_of(const ProcessFacts& process, const std::string& generator) {
  std::vector<Fact> found;
  for (const Fact& fact : process.list("seeds"))
    if (fact.text("generator") == generator) found.push_back(fact);
  return found;
}

Finding about(const std::string& generator) {
  Finding finding;
  finding.surface = Surface::random;
  finding.subject = Subject::generator;
  finding.name = generator;
  return finding;
}

SetBy setter(const Fact& seed) {
  return seed.text("by") == "control" ? SetBy::control : SetBy::code;
}

// The number that the same call gave in the other run, where it is another. The same call: of one
// name, place and step.
std::string other_seed(const Fact& seed, const ProcessFacts* again) {
  if (!again || seed.text("by") == "control") return "";
  for (const Fact& other : seeds_of(*again, seed.text("generator"))) {
    // The first that fits decides: a loop that seeds in one place may have several numbers in a
    // step.
    if (other.text("call") != seed.text("call") || !(other.place() == seed.place()) ||
        other.number("at_step") != seed.number("at_step"))
      continue;
    return other.text("seed") == seed.text("seed") ? "" : other.text("seed");
  }
  return "";
}

// One row for a subject, ground and line, whichever rank or step it was seen in.
void add_once(std::vector<Finding>& out, Finding finding) {
  for (const Finding& known : out)
    if (known.subject == finding.subject && known.ground == finding.ground &&
        known.name == finding.name && known.place.file == finding.place.file &&
        known.place.line == finding.place.line)
      return;
  out.push_back(std::move(finding));
}

// Draws from a generator that has no seed, of the processes that train. Returns how many rows were
// added.
size_t add_draws(const RunFacts& run, const std::string& generator, std::vector<Finding>& out) {
  const size_t before = out.size();
  std::vector<const ProcessFacts*> all = run.trained();
  // A worker's generators are seeded by its loader before it draws.
  for (const ProcessFacts* process : all)
    for (const Fact& fact : process->list("draws")) {
      if (fact.text("generator") != generator) continue;
      Finding finding = about(generator);
      finding.hold = Hold::violated;
      finding.ground = Ground::drawn_unseeded;
      finding.names = {fact.text("call")};
      finding.numbers = {fact.number("times"), fact.number("step")};
      finding.place = fact.place();
      add_once(out, finding);
    }
  return out.size() - before;
}

// Seeds of a later step. A number that was there before makes the same numbers once more.
void judge_later_seeds(const std::vector<Fact>& seeds, std::vector<Finding>& out) {
  std::set<std::string> seen;
  for (const Fact& seed : seeds) {
    const bool known = !seen.insert(seed.text("seed")).second;
    // Of step 0 only the number is remembered. One from the system has none that could come again.
    if (seed.number("at_step") == 0 || seed.is_null("seed")) continue;
    Finding finding = about(seed.text("generator"));
    finding.hold = known ? Hold::violated : Hold::controlled;
    finding.ground = known ? Ground::seeded_again : Ground::seeded_anew;
    finding.value = seed.text("seed");
    finding.by = SetBy::code;
    finding.place = seed.place();
    finding.numbers = {seed.number("at_step")};
    add_once(out, finding);
  }
}

// Rows of what is wrong, one for each place; and one of the seed that holds, or that nothing is
// used, where there is none.
void judge_generator(const RunFacts& run, const RunFacts* again, const std::string& generator,
                     std::vector<Finding>& out) {
  const std::vector<const ProcessFacts*> trained = run.trained();
  const ProcessFacts& first = *trained.front();
  const ProcessFacts* second =
      again && !again->trained().empty() ? again->trained().front() : nullptr;
  const bool drawn = add_draws(run, generator, out) > 0;
  const std::vector<Fact> seeds = seeds_of(first, generator);
  bool wrong = drawn;
  const Fact* holds = nullptr;
  for (const Fact& seed : seeds) {
    Finding finding = about(generator);
    finding.by = setter(seed);
    finding.place = seed.place();
    finding.hold = Hold::violated;
    if (seed.is_null("seed")) {
      finding.ground = Ground::seeded_by_system;
      finding.names = {seed.text("call")};
    } else if (const std::string other = other_seed(seed, second); !other.empty()) {
      finding.ground = Ground::seed_differs;
      finding.value = seed.text("seed");
      finding.names = {other};
    } else {
      // A seed for a while (fork_rng) is no longer torch's in the end.
      const bool lasts =
          generator != "torch" || seed.text("seed") == first.values.text("torch_seed");
      // Of several in step 0 the last one that torch still has at the end, else the first.
      if (seed.number("at_step") == 0 && (!holds || lasts)) holds = &seed;
      continue;
    }
    wrong = true;
    add_once(out, finding);
  }
  judge_later_seeds(seeds, out);
  Finding finding = about(generator);
  if (holds) {
    finding.hold = Hold::controlled;
    finding.ground = Ground::set;
    finding.value = holds->text("seed");
    finding.by = setter(*holds);
    finding.place = holds->place();
    out.push_back(finding);
  } else if (!wrong) {
    // A state that was loaded does what a seed does.
    for (const Fact& fact : first.list("restored"))
      if (fact.text("what") == "generator" && fact.text("name") == generator) {
        finding.hold = Hold::controlled;
        finding.ground = Ground::asked_again;
        finding.by = SetBy::code;
        finding.place = fact.place();
      }
    if (finding.hold == Hold::left) finding.ground = Ground::unused;
    out.push_back(finding);
  }
}

void judge_entropy(const RunFacts& run, std::vector<Finding>& out) {
  std::vector<const ProcessFacts*> all = run.trained();
  for (const ProcessFacts* helper : run.helpers()) all.push_back(helper);
  for (const ProcessFacts* process : all)
    for (const Fact& fact : process->list("entropy")) {
      Finding finding;
      finding.subject = Subject::entropy;
      finding.name = fact.text("call");
      finding.hold = Hold::violated;
      finding.ground = Ground::from_system;
      finding.place = fact.place();
      finding.numbers = {process->child ? 1 : 0};
      // A place that a worker and its parent share is one.
      add_once(out, finding);
    }
}

// PYTHONHASHSEED=random is a value, and fixes nothing. A late setting stays violated: Python has
// read it.
void judge_hash(const ProcessFacts& process, std::vector<Finding>& out) {
  Finding finding = variable_finding(process, Surface::random, "PYTHONHASHSEED");
  finding.subject = Subject::hash_order;
  if (finding.value == "random" && finding.hold == Hold::controlled) finding.hold = Hold::left;
  if (finding.hold == Hold::left) finding.ground = Ground::unset;
  out.push_back(finding);
}

// Told, and never judged: both equal and other seeds are right for some programs.
void judge_rank_seeds(const RunFacts& run, std::vector<Finding>& out) {
  const auto trained = run.trained();
  if (trained.size() < 2) return;
  Finding finding;
  finding.subject = Subject::rank_seeds;
  std::set<std::string> values;
  for (const ProcessFacts* process : trained) {
    finding.names.push_back(process->values.text("torch_seed"));
    values.insert(finding.names.back());
  }
  finding.ground = values.size() > 1 ? Ground::ranks_differ : Ground::ranks_agree;
  out.push_back(finding);
}

}  // namespace

void judge_random(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out) {
  for (const char* generator : kGenerators) judge_generator(run, again, generator, out);
  judge_entropy(run, out);
  judge_hash(*run.trained().front(), out);
  judge_rank_seeds(run, out);
}

}  // namespace opguard
