// DataLoaders: where their order and their workers' numbers come from, and their samplers' epochs.
//
//   DataLoader(data, shuffle=True)           follows_torch; where it has no seed unseeded_order
//   data = list({"a", "b", "c"})             two runs, the same indices: batches_differ
//   DistributedSampler, passes "0" and "0"   epoch_stays: nobody called set_epoch
//   self.rng of the data set, 4 workers      same_in_workers: each has a copy of one generator
//
// Counterexample: another number of batches in the two runs. One may have been ended earlier, so
// beginnings are compared.
//
// The cost: of each loader the digests of its first batches, 16 at most.
#include <algorithm>
#include <set>

#include "determinism/judge.h"

namespace opguard {
namespace {

Finding about_loader(const Fact& loader, Subject subject) {
  Finding finding;
  finding.surface = Surface::random;
  finding.subject = subject;
  finding.name = loader.text("sampler");
  finding.place = loader.place();
  return finding;
}

bool unlike_beginnings(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  const size_t length = std::min(a.size(), b.size());
  return !std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(length), b.begin());
}

// The same loader in the other run: as many were made before it.
const Fact* counterpart(const std::vector<Fact>& others, size_t number, const Fact& loader) {
  if (number >= others.size()) return nullptr;
  const Fact& other = others[number];
  return other.place() == loader.place() ? &other : nullptr;
}

// Whether an order that is drawn from torch's generator is the same in each run, by what
// judge_random() found. Where an order is drawn before the seed, the draw has a row of its own.
bool torch_is_seeded(const std::vector<Finding>& so_far) {
  bool seeded = false;
  for (const Finding& finding : so_far) {
    if (finding.subject != Subject::generator || finding.name != "torch") continue;
    if (finding.ground == Ground::seed_differs || finding.ground == Ground::seeded_by_system)
      return false;
    seeded |= finding.hold == Hold::controlled;
  }
  return seeded;
}

// What two runs show goes before what the sampler's type says. A SequentialSampler over a set's
// elements is in order, and its batches differ.
void judge_order(const Fact& loader, const Fact* other, bool seeded, std::vector<Finding>& out) {
  Finding finding = about_loader(loader, Subject::loader);
  if (other && unlike_beginnings(loader.numbers("order"), other->numbers("order"))) {
    finding.hold = Hold::violated;
    finding.ground = Ground::order_differs;
  } else if (other && unlike_beginnings(loader.numbers("batches"), other->numbers("batches"))) {
    finding.hold = Hold::violated;
    finding.ground = Ground::batches_differ;
  } else if (loader.text("sampler") == "SequentialSampler") {
    finding.hold = Hold::controlled;
    finding.ground = Ground::in_order;
  } else if (loader.text("sampler") == "RandomSampler") {
    // The seed of a generator that the sampler, or else the loader, was given.
    std::string own = loader.text("sampler_generator");
    if (own.empty()) own = loader.text("generator");
    finding.by = own.empty() ? SetBy::nobody : SetBy::code;
    finding.hold = seeded || !own.empty() ? Hold::controlled : Hold::violated;
    finding.ground = !own.empty() ? Ground::own_seed
                     : seeded     ? Ground::follows_torch
                                  : Ground::unseeded_order;
    if (!own.empty()) finding.names = {own};
  } else {
    // A sampler of the program's own: two runs that agree say that it is held, one alone says
    // nothing.
    finding.hold = other ? Hold::controlled : Hold::left;
    finding.ground = other ? Ground::set : Ground::unknown;
  }
  out.push_back(finding);
}

// The loader seeds each worker's python, torch and numpy with a number of its own. What it does not
// know is a generator that the data set holds: each worker gets the same copy.
void judge_workers(const RunFacts& run, const Fact& loader, bool seeds_numpy,
                   std::vector<Finding>& out) {
  if (loader.number("workers") == 0) return;
  Finding finding = about_loader(loader, Subject::workers);
  finding.hold = Hold::controlled;
  finding.ground = Ground::workers_seeded;
  finding.numbers = {loader.number("workers")};
  // A worker_init_fn is believed to do what is needed.
  const bool init = loader.flag("worker_init");
  std::set<std::string> drawn;
  for (const ProcessFacts* helper : run.helpers())
    for (const Fact& fact : helper->list("worker_draws"))
      if (fact.text("data") == loader.text("data")) drawn.insert(fact.text("held"));
  const std::vector<std::string> held = loader.texts("held");
  for (const std::string& name : held)
    // It has to be drawn from as well: a generator that lies idle is no fault. A single worker has
    // nobody to repeat.
    if (drawn.contains(name) && !init && loader.number("workers") > 1)
      finding.names.push_back(name);
  if (!finding.names.empty()) {
    finding.hold = Hold::violated;
    finding.ground = Ground::same_in_workers;
  } else if (!seeds_numpy && !init) {
    finding.hold = Hold::violated;
    finding.ground = Ground::numpy_in_workers;
  } else if (init) {
    finding.by = SetBy::code;
  }
  out.push_back(finding);
}

//   passes "0", "1", "2"   epoch_set
//   passes "0", "0"        epoch_stays
//   one pass, no call      epoch_unseen; where no source of the program says set_epoch epoch_unsaid
void judge_epochs(const Fact& loader, bool mentioned, std::vector<Finding>& out) {
  for (const Fact& epoch : loader.facts("epochs")) {
    const std::vector<std::string> passes = epoch.texts("passes");
    if (!epoch.flag("shuffle") || passes.empty()) continue;
    const std::vector<int64_t> calls = epoch.numbers("called");
    Finding finding;
    finding.subject = Subject::sampler;
    finding.name = epoch.text("kind");
    finding.place = epoch.place();
    if (!finding.place.known()) finding.place = loader.place();
    finding.numbers = {static_cast<int64_t>(passes.size())};
    const bool ever = std::any_of(calls.begin(), calls.end(), [](int64_t n) { return n > 0; });
    const bool stays =
        // The sampler's epoch as each pass began. Two passes with one number have one order.
        passes.size() > 1 && std::adjacent_find(passes.begin(), passes.end()) != passes.end();
    finding.hold = Hold::violated;
    if (stays)
      finding.ground = Ground::epoch_stays;
    else if (!ever && passes.size() == 1 && !mentioned)
      finding.ground = Ground::epoch_unsaid;
    else if (!ever && passes.size() == 1)
      finding.hold = Hold::left, finding.ground = Ground::epoch_unseen;
    else
      finding.hold = Hold::controlled, finding.ground = Ground::epoch_set, finding.by = SetBy::code;
    out.push_back(finding);
  }
}

}  // namespace

void judge_data(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out) {
  const ProcessFacts& first = *run.trained().front();
  const bool seeded = torch_is_seeded(out), mentioned = first.values.flag("mentions_set_epoch");
  const bool seeds_numpy = first.values.flag("worker_seeds_numpy");
  std::vector<Fact> others;
  if (again && !again->trained().empty())
    others = again->trained().front()->values.facts("loaders");
  const std::vector<Fact> loaders = first.values.facts("loaders");
  for (size_t i = 0; i < loaders.size(); ++i) {
    if (loaders[i].number("passes") == 0) continue;
    judge_order(loaders[i], counterpart(others, i, loaders[i]), seeded, out);
    judge_workers(run, loaders[i], seeds_numpy, out);
    judge_epochs(loaders[i], mentioned, out);
  }
}

}  // namespace opguard
