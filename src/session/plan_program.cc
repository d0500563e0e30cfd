// The program may run for minutes. So the tree, the folder of the plan, the templates and the work
// folder are looked at before it.
#include "session/plan_program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>

#include "session/survey.h"
#include "support/diagnostics.h"
#include "support/exit_code.h"
#include "support/launch.h"
#include "support/say.h"
#include "support/text.h"

namespace opguard {
namespace {

namespace fs = std::filesystem;

using Count = unsigned long long;

// Rounded down, so that 100.0 % is said of all and nothing less.
std::string share(uint64_t part, uint64_t whole) {
  uint64_t permille = whole ? part * 1000 / whole : 1000;
  return std::to_string(permille / 10) + "." + std::to_string(permille % 10) + " %";
}

// "3 optimizer steps, 2 micro-batches each"
std::string steps_text(const Trace& trace) {
  std::string text = counted(trace.steps, "optimizer step");
  uint64_t fewest = UINT64_MAX, most = 0;
  for (const auto& [passes, steps] : trace.micro_batches) {
    uint64_t count = std::strtoull(passes.c_str(), nullptr, 10);
    fewest = std::min(fewest, count);
    most = std::max(most, count);
  }
  if (trace.micro_batches.empty()) return text;
  if (fewest != most)
    return text + ", " + std::to_string(fewest) + " to " + std::to_string(most) +
           " micro-batches each";
  return text + ", " + std::to_string(most) +
         (most == 1 ? " micro-batch each" : " micro-batches each");
}

// Shares are of activities that compute. Of places without a probe those of imports are left out.
void print_coverage(const Plan& plan) {
  std::printf("coverage: %s of %llu activities that compute belong to a boundary",
              share(plan.attributed(), plan.activities()).c_str(), Count(plan.activities()));
  const char* separator = ":";
  for (const char* name : {"forward", "recompute", "backward", "optimizer"}) {
    auto phase = plan.coverage.find(name);
    if (phase == plan.coverage.end() || phase->second.activities == 0) continue;
    std::printf("%s %s %s", separator, name,
                share(phase->second.attributed, phase->second.activities).c_str());
    separator = ",";
  }
  std::printf("\n");
  uint64_t unwrapped = 0, foreign = 0;
  for (const Unwrapped& place : plan.unwrapped)
    if (place.phase != kImportPhase) unwrapped += place.activities;
  for (const Foreign& activity : plan.foreign) foreign += activity.count;
  if (unwrapped > 0) {
    const Unwrapped& most = *std::find_if(
        plan.unwrapped.begin(), plan.unwrapped.end(),
        [](const Unwrapped& place) { return place.phase != kImportPhase && place.activities > 0; });
    std::printf("  %llu at places no probe can stand, most at %s:%u (%s)\n", Count(unwrapped),
                shown(most.file).c_str(), most.line, shown(most.what).c_str());
  }
  if (foreign > 0)
    std::printf("  %llu below no source of the tree or a --with package, most %s\n", Count(foreign),
                shown(plan.foreign.front().activity).c_str());
}

// Nothing where no device was traced. The five most frequent kernels of no boundary are named.
void print_kernels(const std::vector<TracedDevice>& traced, const KernelCoverage& devices) {
  for (const TracedDevice& device : traced)
    std::printf("device %s: by %s%s\n", shown(device.type).c_str(), shown(device.source).c_str(),
                device.clock == "host" ? "; times are the host's, of the launches" : "");
  if (traced.empty()) return;
  std::printf("kernels: %s of %llu belong to a boundary\n",
              share(devices.attributed, devices.kernels).c_str(), Count(devices.kernels));
  if (devices.dropped > 0)
    std::printf("note: %llu device activities were dropped\n", Count(devices.dropped));
  // By name; all are in the plan.
  std::vector<std::pair<std::string, uint64_t>> rest(devices.rest.begin(), devices.rest.end());
  std::stable_sort(rest.begin(), rest.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  constexpr size_t kShown = 5;
  for (size_t i = 0; i < rest.size() && i < kShown; ++i)
    std::printf("  %llu of no boundary: %s\n", Count(rest[i].second), shown(rest[i].first).c_str());
}

void print_plan(const PlanProgramOptions& opt, const Trace& trace, const Plan& plan) {
  std::set<std::string> files;
  for (const Boundary& boundary : plan.boundaries)
    files.insert(boundary.site.package + ":" + boundary.site.file);
  std::printf("%s: %zu boundaries in %zu files\n", opt.out.c_str(), plan.boundaries.size(),
              files.size());
  std::printf("steps: %s\n", steps_text(trace).c_str());
  print_coverage(plan);
  print_kernels(trace.devices, plan.devices);
  if (trace.errors > 0)
    std::printf("note: %llu activities could not be placed\n", Count(trace.errors));
  if (trace.ended) std::printf("note: %s\n", told_end(trace).c_str());
  if (!trace.complete) std::printf("note: a process was killed before its trace was whole\n");
  std::printf("next: opguard-instrument %s --plan %s\n", quote({opt.tree}).c_str(),
              quote({opt.out}).c_str());
}

}  // namespace

int plan_program(const PlanProgramOptions& opt) {
  auto tree = canonical_tree(opt.tree);
  if (!tree) return fail(llvm::toString(tree.takeError()));
  // Before the program's minutes are spent.
  fs::path out_dir = fs::absolute(opt.out).parent_path();
  if (!fs::is_directory(out_dir)) return fail("no such folder: " + out_dir.string());
  Diagnostics diags;
  auto templates = find_templates("", diags);
  if (!templates) return fail(llvm::toString(templates.takeError()));
  auto work = WorkFolder::open(opt.work);
  if (!work) return fail(llvm::toString(work.takeError()));

  say_step("preflight in " + *tree + ": " + quote(opt.command));
  auto left_out = left_out_of(*tree, opt.sources, opt.command);
  if (!left_out) return fail(llvm::toString(left_out.takeError()));
  say_left_out(*left_out, opt.sources);
  auto seen = survey({.command = opt.command,
                      .tree = *tree,
                      .packages = opt.packages,
                      .left_out = left_out->all(),
                      .steps = opt.steps,
                      .work = work->path(),
                      .quiet = talk() == Talk::quiet,
                      .activities = opt.activities},
                     *templates, diags);
  print_diagnostics(diags.text());
  if (!seen) return fail(llvm::toString(seen.takeError()));
  if (auto error = write_plan(seen->plan, opt.out)) return fail(llvm::toString(std::move(error)));
  print_plan(opt, seen->trace, seen->plan);
  return kYes;
}

}  // namespace opguard
