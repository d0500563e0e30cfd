// Process groups, replicas and their buckets; and which layout was seen.
//
//   gloo, 2 ranks                 fixed_order: it sums in the order of the ranks
//   nccl, 8 ranks                 left; a row each for NCCL_ALGO, NCCL_PROTO and others
//   DDP, buckets of 25 MiB        rebuilt: in the order in which gradients arrived first
//   two runs made other buckets   order_differs
//
// Counterexample: NCCL's choice itself. It depends on message sizes, tuning and topology, and is
// not seen here; only whether somebody has fixed it.
//
// The cost: a few facts of the first rank.
#include <algorithm>

#include "determinism/judge.h"
#include "determinism/variables.h"

namespace opguard {
namespace {

// A backend may be of two parts: "cpu:gloo,cuda:nccl".
bool uses_nccl(const ProcessFacts& process) {
  for (const Fact& fact : process.list("groups"))
    if (fact.text("backend").find("nccl") != std::string::npos) return true;
  return false;
}

void judge_group(const ProcessFacts& process, std::vector<Finding>& out) {
  Finding finding;
  finding.surface = Surface::collectives;
  finding.subject = Subject::group;
  const std::vector<Fact>& groups = process.list("groups");
  if (groups.empty()) {
    finding.ground = Ground::unused;
    out.push_back(finding);
    return;
  }
  finding.name = groups.front().text("backend");
  finding.place = groups.front().place();
  finding.numbers = {groups.front().number("world")};
  finding.by = SetBy::code;
  finding.ground = uses_nccl(process) ? Ground::set : Ground::fixed_order;
  finding.hold = uses_nccl(process) ? Hold::left : Hold::controlled;
  out.push_back(finding);
}

void judge_nccl(const ProcessFacts& process, std::vector<Finding>& out) {
  const bool used = uses_nccl(process);
  // Algorithm, protocol, sums inside a switch, channels, the topology of the machine. Where NCCL is
  // not used, only what somebody has set is told.
  for (const char* name : {"NCCL_ALGO", "NCCL_PROTO", "NCCL_NVLS_ENABLE", "NCCL_COLLNET_ENABLE",
                           "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_TOPO_FILE"}) {
    Finding finding = variable_finding(process, Surface::collectives, name);
    if (finding.hold == Hold::left && !used) continue;
    out.push_back(finding);
  }
}

// Gradients of a bucket are reduced together, so other buckets are other sums. `names`: what DDP
// was given, and the sizes.
void judge_buckets(const ProcessFacts& process, const ProcessFacts* again,
                   std::vector<Finding>& out) {
  const std::vector<Fact> buckets = process.values.facts("buckets");
  const std::vector<Fact> others = again ? again->values.facts("buckets") : std::vector<Fact>();
  const std::vector<Fact>& replicas = process.list("replicas");
  for (size_t i = 0; i < replicas.size(); ++i) {
    const Fact& replica = replicas[i];
    Finding finding;
    finding.surface = Surface::collectives;
    finding.subject = Subject::buckets;
    finding.place = replica.place();
    finding.value = replica.text("bucket_cap_mb");
    const std::vector<std::string> given = replica.texts("given");
    // Who gives one of these arguments has thought of it.
    if (!given.empty()) {
      finding.by = SetBy::code;
      finding.hold = Hold::controlled;
    }
    const bool fixed = replica.flag("static_graph") || replica.text("static_graph") == "True";
    const bool unused = replica.text("find_unused_parameters") == "True";
    // DDP makes its buckets anew behind the first step. It does not where unused parameters are
    // looked for in each step.
    finding.ground = unused && !fixed ? Ground::by_default : Ground::rebuilt;
    for (const char* name : {"find_unused_parameters", "static_graph", "broadcast_buffers"})
      finding.names.push_back(std::string(name) + "=" + replica.text(name));
    if (i < buckets.size()) {
      finding.names.push_back("sizes=" + buckets[i].text("rebuilt_bucket_sizes"));
      if (i < others.size() &&
          others[i].text("rebuilt_bucket_sizes") != buckets[i].text("rebuilt_bucket_sizes")) {
        finding.hold = Hold::violated;
        finding.ground = Ground::order_differs;
      }
    }
    out.push_back(finding);
  }
}

}  // namespace

void judge_collectives(const RunFacts& run, const RunFacts* again, std::vector<Finding>& out) {
  const ProcessFacts& first = *run.trained().front();
  const ProcessFacts* second =
      again && !again->trained().empty() ? again->trained().front() : nullptr;
  judge_group(first, out);
  judge_nccl(first, out);
  judge_buckets(first, second, out);
}

// Told, and never judged: another layout is another arithmetic. `names`: "data parallel (DDP)",
// "tensor 2", "mesh 2 4 dp tp".
void judge_layout(const RunFacts& run, std::vector<Finding>& out) {
  const ProcessFacts& first = *run.trained().front();
  Finding finding;
  finding.surface = Surface::layout;
  finding.subject = Subject::layout;
  finding.ground = Ground::unused;
  int64_t world = 1;
  for (const Fact& group : first.list("groups")) world = std::max(world, group.number("world"));
  finding.numbers = {world};
  if (world > 1) finding.ground = Ground::by_default;
  if (!first.list("replicas").empty()) finding.names.push_back("data parallel (DDP)");
  const TextMap layout = first.map("layout");
  for (const char* kind : {"fsdp", "tensor_parallel", "pipelining", "deepspeed"})
    if (layout.contains(kind)) finding.names.push_back(kind);
  for (const char* kind : {"tensor", "pipeline", "context", "expert"})
    if (const auto at = layout.find(kind); at != layout.end())
      finding.names.push_back(std::string(kind) + " " + at->second);
  for (const Fact& mesh : first.list("meshes")) {
    std::string text = "mesh";
    for (const int64_t size : mesh.numbers("shape")) text += " " + std::to_string(size);
    for (const std::string& name : mesh.texts("names")) text += " " + name;
    finding.names.push_back(text);
  }
  out.push_back(finding);
}

}  // namespace opguard
