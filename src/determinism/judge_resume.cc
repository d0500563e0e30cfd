// What a resume takes up of what the program uses; and what a checkpoint lacks that was written.
//
//   in use       optimizer SGD, scheduler StepLR, python's and torch's generators
//   restored     model, optimizer
//   rows         model and optimizer asked_again, scheduler missing
//                generator torch missing, as it was drawn from since
//
// A run resumes where an optimizer's state is restored. Counterexample: a model alone, which is
// loaded where training begins from weights of others. Nothing is asked of it.
//
// A missing thing has no place of its own: the place is where the optimizer was restored, since the
// line belongs there.
//
// The cost: once over the facts of the process of the lowest rank; the other ranks run the same
// lines.
#include <algorithm>
#include <map>
#include <set>

#include "determinism/judge.h"

namespace opguard {
namespace {

constexpr const char* kKinds[] = {"optimizer", "scheduler", "scaler"};

// What the program uses: kind -> the types.
std::map<std::string, std::vector<std::string>> used_kinds(const Fact& held) {
  std::map<std::string, std::vector<std::string>> used;
  if (held.fields.is_object())
    for (const auto& [kind, names] : held.fields.items()) used[kind] = held.texts(kind.c_str());
  return used;
}

// `in_use` of the process as it ended, or of a checkpoint as it was written.
Fact in_use(const Fact& held) {
  if (!held.fields.is_object() || !held.fields.contains("in_use")) return {};
  return {held.fields["in_use"]};
}

struct Resume {
  const ProcessFacts& process;
  CallSite optimizer;  // where the first one was restored

  Finding about(const std::string& name) const {
    Finding finding;
    finding.surface = Surface::resume;
    finding.subject = Subject::restored;
    finding.name = name;
    return finding;
  }

  const Fact* restored(const std::string& what, const std::string& name = "") const {
    for (const Fact& fact : process.list("restored"))
      if (fact.text("what") == what && (name.empty() || fact.text("name") == name)) return &fact;
    return nullptr;
  }

  // Of one kind as many as are used: of two optimizers of type SGD both have to be restored.
  void judge_kind(const std::string& kind, const std::vector<std::string>& types,
                  std::vector<Finding>& out) const {
    Finding finding = about(kind);
    std::vector<std::string> left = types;
    for (const Fact& fact : process.list("restored")) {
      if (fact.text("what") != kind) continue;
      finding.place = fact.place();
      // One fact stands for several calls in one place.
      for (int64_t i = 0; i < std::max<int64_t>(fact.number("times"), 1); ++i)
        if (const auto at = std::find(left.begin(), left.end(), fact.text("name"));
            at != left.end())
          left.erase(at);
    }
    finding.hold = left.empty() ? Hold::controlled : Hold::violated;
    finding.ground = left.empty() ? Ground::asked_again : Ground::missing;
    finding.names = left.empty() ? types : left;
    finding.by = SetBy::code;
    if (!left.empty()) finding.place = optimizer;
    out.push_back(finding);
  }

  void judge_model(std::vector<Finding>& out) const {
    Finding finding = about("model");
    const Fact* fact = restored("model");
    finding.by = SetBy::code;
    finding.hold = fact ? Hold::controlled : Hold::violated;
    finding.ground = fact ? Ground::asked_again : Ground::missing;
    finding.place = fact ? fact->place() : optimizer;
    out.push_back(finding);
  }

  // Of those that were drawn from since the resume: a restored state, or a seed behind the resume,
  // holds one.
  void judge_generators(std::vector<Finding>& out) const {
    const std::vector<Fact>& seeds = process.list("seeds");
    // Seeds are counted over all generators, so this is a position in `seeds`.
    const size_t before = static_cast<size_t>(process.values.number("seeds_at_resume"));
    for (const std::string& name : process.values.texts("drawn_since_resume")) {
      Finding finding = about("generator " + name);
      finding.hold = Hold::violated;
      finding.ground = Ground::missing;
      finding.place = optimizer;
      finding.by = SetBy::code;
      if (const Fact* fact = restored("generator", name)) {
        finding.hold = Hold::controlled;
        finding.ground = Ground::asked_again;
        finding.place = fact->place();
      }
      for (size_t i = before; i < seeds.size(); ++i)
        if (seeds[i].text("generator") == name && finding.ground == Ground::missing) {
          finding.hold = Hold::controlled;
          finding.ground = Ground::seeded_after;
          finding.value = seeds[i].text("seed");
          finding.place = seeds[i].place();
        }
      out.push_back(finding);
    }
  }

  // Where the data goes on. Any sign that the program cares is believed: a loader's state, batches
  // that were passed over, a later epoch. Without one nothing is known, and nothing is violated.
  void judge_position(std::vector<Finding>& out) const {
    const std::vector<Fact> loaders = process.values.facts("loaders");
    const bool any = std::any_of(loaders.begin(), loaders.end(),
                                 [](const Fact& loader) { return loader.number("passes") > 0; });
    Finding finding = about("");
    finding.subject = Subject::position;
    finding.by = SetBy::code;
    // The last of these is the one that the first backward pass is of.
    const int64_t passed = process.values.number("batches_before_backward") - 1;
    bool later_epoch = false;
    for (const Fact& loader : loaders)
      for (const Fact& epoch : loader.facts("epochs"))
        for (const std::string& pass : epoch.texts("passes"))
          // A sampler's epoch as a pass began.
          later_epoch |= pass != "0" && !pass.empty();
    if (const Fact* fact = restored("loader")) {
      finding.hold = Hold::controlled;
      finding.ground = Ground::asked_again;
      finding.place = fact->place();
    } else if (passed > 1) {  // one: a loader that reads ahead
      finding.hold = Hold::controlled;
      finding.ground = Ground::skipped;
      finding.numbers = {passed};
    } else if (later_epoch) {
      finding.hold = Hold::controlled;
      finding.ground = Ground::epoch_set;
    } else if (any) {
      finding.by = SetBy::nobody;
      finding.ground = Ground::unknown;
    } else {
      return;
    }
    out.push_back(finding);
  }
};

// One checkpoint may be several files, of one step.
void judge_written(const ProcessFacts& process, std::vector<Finding>& out) {
  std::map<int64_t, std::vector<const Fact*>> by_step;
  for (const Fact& fact : process.list("saved")) by_step[fact.number("at_step")].push_back(&fact);
  for (const auto& [step, files] : by_step) {
    std::set<std::string> holds;
    std::map<std::string, std::vector<std::string>> used;
    CallSite place;
    for (const Fact* file : files) {
      for (const std::string& kind : file->texts("holds")) holds.insert(kind);
      // What was in use as the last file of the step was written.
      for (auto& [kind, names] : used_kinds(in_use(*file))) used[kind] = names;
      if (!place.known()) place = file->place();
    }
    if (!holds.contains("optimizer")) continue;  // weights to be used, no checkpoint to go on from
    Finding finding;
    finding.surface = Surface::resume;
    finding.subject = Subject::written;
    finding.by = SetBy::code;
    finding.place = place;
    finding.hold = Hold::controlled;
    finding.ground = Ground::written_whole;
    std::vector<std::string> generators;
    for (const auto& [kind, names] : used) {
      // A kind counts as written where any of its state dictionaries is in a file; generators are
      // kinds of their own.
      if (holds.contains(kind)) continue;
      if (kind.starts_with("generator."))
        generators.push_back("generator " + kind.substr(10));
      else
        finding.names.push_back(kind);
    }
    if (!finding.names.empty()) {
      finding.hold = Hold::violated;
      finding.ground = Ground::not_written;
    } else if (!generators.empty()) {
      // A checkpoint without generators goes on with other numbers, which many programs accept:
      // told, and not violated.
      finding.hold = Hold::left;
      finding.ground = Ground::not_written;
    }
    finding.names.insert(finding.names.end(), generators.begin(), generators.end());
    out.push_back(finding);
    return;  // the next ones are written by the same code
  }
}

}  // namespace

void judge_resume(const RunFacts& run, std::vector<Finding>& out) {
  const ProcessFacts& process = *run.trained().front();
  const Resume resume{process, {}};
  const Fact* optimizer = resume.restored("optimizer");
  if (!optimizer) {
    Finding finding;
    finding.surface = Surface::resume;
    finding.subject = Subject::no_resume;
    finding.ground = Ground::unused;
    out.push_back(finding);
    judge_written(process, out);
    return;
  }
  const Resume taken{process, optimizer->place()};
  taken.judge_model(out);
  std::map<std::string, std::vector<std::string>> used = used_kinds(in_use(process.values));
  for (const char* kind : kKinds)
    if (const auto at = used.find(kind); at != used.end()) taken.judge_kind(kind, at->second, out);
  taken.judge_generators(out);
  taken.judge_position(out);
}

}  // namespace opguard
