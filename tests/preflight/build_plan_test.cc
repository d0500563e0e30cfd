#include "preflight/build_plan.h"

#include <map>

#include "gtest/gtest.h"
#include "parser/parse.h"

namespace opguard {
namespace {

constexpr const char* kText =
    "def f(x):\n"
    "    y = torch.exp(x)\n"
    "    z = Alias(x)\n"
    "    return y * z\n"
    "def step(opt):\n"
    "    opt.step()\n";

struct Built {
  SourceSet sources;
  std::vector<Site> sites;
  Plan plan;
};

TracedUse use(int line, int column, int end, const std::string& opcode, uint64_t order,
              std::map<std::string, uint64_t> activities, const std::string& path,
              std::map<std::string, uint64_t> compute = {}) {
  TracedUse u;
  u.path = path;
  u.line = u.end_line = line;
  u.column = column;
  u.end_column = end;
  u.opcode = opcode;
  u.order = order;
  u.calls = 1;
  u.activities = std::move(activities);
  u.phases = {{"forward", 1}};
  u.compute = std::move(compute);
  return u;
}

Built build(const std::string& root) {
  Built b;
  std::string path = root + "/m/__init__.py";
  b.sources.files.push_back(make_source("", "m/__init__.py", path, kText));
  Diagnostics diags;
  b.sites = parse_sites(b.sources, diags);
  Trace trace;
  trace.python = "3.11.7";
  trace.foreign = 7;
  trace.foreign_compute = {{"backward", {{"aten::sum", 5}}}};
  trace.accumulated = {{"aten::add_.Tensor", 4}};
  trace.roots = {{"", root, ""}};
  trace.uses = {
      use(4, 11, 16, "BINARY_OP", 7, {{"aten::mul.Tensor", 3}}, path,
          {{"forward", 3}, {"backward", 6}}),
      use(2, 8, 20, "CALL", 2, {{"aten::exp", 2}}, path, {{"forward", 2}}),
      use(2, 8, 20, "PRECALL", 1, {{"aten::empty_like", 1}}, path),
      use(3, 8, 16, "CALL", 3, {{"aten::detach", 4}, {"prim::device", 2}}, path),
      use(6, 4, 14, "CALL", 9, {{"opguard::optimizer_step", 1}}, path),
      use(2, 8, 17, "IMPORT_NAME", 4, {{"aten::exp", 6}}, path, {{"forward", 5}, {"recompute", 1}}),
      use(1, 0, 3, "CALL", 5, {{"aten::add", 8}}, root + "/n/other.py", {{"forward", 8}}),
  };
  trace.uses[0].backward = {{"aten::mul.Tensor", 6}};
  trace.uses[1].writes = {"arg0"};
  // On a device: below a boundary, an import, no site, a gradient, and nothing at all.
  trace.devices = {{"cuda", "CUPTI 13.0, /usr/lib/libcupti.so.13", "device", 20, 1},
                   {"cuda", "interception of launches (no CUPTI: busy)", "host", 2, 1}};
  trace.uses[0].kernels = {{"mul", 9}};
  trace.uses[0].kernel_phases = {{"forward", 3}, {"backward", 6}};
  trace.uses[0].transfers = {{"memcpy HtoD", 4}};
  trace.uses[5].kernels = {{"table", 5}};
  trace.uses[5].kernel_phases = {{"import", 5}};
  trace.uses[6].kernels = {{"add", 8}};
  trace.uses[6].kernel_phases = {{"forward", 8}};
  trace.accumulated_kernels = {{"sum", 2}};
  trace.foreign_kernels = {{"", {{"add", 1}}}, {"import", {{"fill", 7}}}};
  b.plan = build_plan(trace, b.sources, b.sites, TemplateLibrary());
  return b;
}

TEST(BuildPlan, BoundariesAreTheSitesWithActivities) {
  Plan plan = build("/t").plan;
  ASSERT_EQ(plan.boundaries.size(), 3u) << dump(plan);
  const Boundary &exp = plan.boundaries[0], &mul = plan.boundaries[1], &step = plan.boundaries[2];
  EXPECT_EQ(exp.text, "torch.exp(x)");
  EXPECT_EQ(exp.order, 1u);
  EXPECT_EQ(exp.calls, 2u);
  EXPECT_EQ(exp.activities,
            (std::map<std::string, uint64_t>{{"aten::empty_like", 1}, {"aten::exp", 2}}));
  EXPECT_EQ(exp.id.substr(0, 6), "m.exp:");
  EXPECT_FALSE(exp.tags.empty());
  EXPECT_EQ(mul.text, "y * z");
  EXPECT_EQ(mul.id.substr(0, 6), "m.mul:");
  EXPECT_EQ(step.text, "opt.step()");
}

// nn.Parameter and state_dict detach too: that is bookkeeping. A call of .detach() leaves the
// graph.
TEST(BuildPlan, ADetachThatTheUserWroteIsABoundary) {
  SourceSet sources;
  sources.files.push_back(make_source("", "m.py", "/t/m.py", "y = x.detach()\nz = Parameter(x)\n"));
  Diagnostics diags;
  const std::vector<Site> sites = parse_sites(sources, diags);
  Trace trace;
  trace.roots = {{"", "/t", ""}};
  trace.uses = {use(1, 4, 14, "CALL", 0, {{"aten::detach", 1}}, "/t/m.py"),
                use(2, 4, 16, "CALL", 1, {{"aten::detach", 1}}, "/t/m.py")};
  const Plan plan = build_plan(trace, sources, sites, TemplateLibrary());
  ASSERT_EQ(plan.boundaries.size(), 1u) << dump(plan);
  EXPECT_EQ(plan.boundaries[0].text, "x.detach()");
}

TEST(BuildPlan, CoverageCountsWhatComputesByPhase) {
  Plan plan = build("/t").plan;
  std::map<std::string, PhaseCoverage> expected = {{"forward", {3 + 2 + 5 + 8, 3 + 2, 0}},
                                                   {"recompute", {1, 0, 0}},
                                                   {"backward", {6 + 4 + 5, 6 + 4, 4}}};
  EXPECT_EQ(plan.coverage, expected) << dump(plan);
  EXPECT_EQ(plan.activities(), 34u);
  EXPECT_EQ(plan.attributed(), 15u);
  // What is not attributed is listed, all of it.
  ASSERT_EQ(plan.unwrapped.size(), 3u) << dump(plan);
  EXPECT_EQ(plan.unwrapped[0], (Unwrapped{"", "n/other.py", 1, "source not read", "forward", 8}));
  EXPECT_EQ(plan.unwrapped[1], (Unwrapped{"", "m/__init__.py", 2, "import", "forward", 5}));
  EXPECT_EQ(plan.unwrapped[2], (Unwrapped{"", "m/__init__.py", 2, "import", "recompute", 1}));
  EXPECT_EQ(plan.foreign, (std::vector<Foreign>{{"backward", "aten::sum", 5}}));
}

TEST(BuildPlan, BackwardAndWritesGoToTheBoundary) {
  Plan plan = build("/t").plan;
  EXPECT_EQ(plan.boundaries[0].writes, std::vector<std::string>{"arg0"});
  EXPECT_EQ(plan.boundaries[1].backward,
            (std::map<std::string, uint64_t>{{"aten::mul.Tensor", 6}}));
}

TEST(BuildPlan, KernelsGoToTheBoundaryAndTheRestIsListed) {
  Plan plan = build("/t").plan;
  EXPECT_EQ(plan.boundaries[1].kernels, (std::map<std::string, uint64_t>{{"mul", 9}}));
  EXPECT_EQ(plan.boundaries[1].transfers, (std::map<std::string, uint64_t>{{"memcpy HtoD", 4}}));
  KernelCoverage expected{{"cuda: CUPTI 13.0", "cuda: interception of launches"},
                          9 + 8 + 2 + 1,
                          9 + 2,
                          2,
                          {{"add", 8 + 1}}};
  EXPECT_EQ(plan.devices, expected) << dump(plan);
}

TEST(BuildPlan, SameOnEveryMachine) {
  EXPECT_EQ(build("/t").plan, build("/home/someone/else").plan);
}

TEST(BuildPlan, ContextIsTheRestOfTheScopes) {
  Plan plan = build("/t").plan;
  ASSERT_EQ(plan.context.size(), 1u);
  EXPECT_EQ(plan.context[0].callee, "Alias");
  EXPECT_EQ(plan.context[0].scope, "f");
}

std::vector<Site> look_alikes(size_t count) {
  std::vector<Site> sites(count);
  for (Site& s : sites) {
    s.file = "a.py";
    s.callee = "f";
    s.scope = "g";
  }
  return sites;
}

TEST(BoundaryIds, UniqueAndOfSafeCharacters) {
  std::vector<Site> sites = look_alikes(20000);  // enough for several equal hashes of 4 letters
  sites[0].callee = "Größe\x1b";
  sites[0].file = "my file.py";
  std::vector<std::string> ids = boundary_ids(sites);
  std::set<std::string> unique(ids.begin(), ids.end());
  EXPECT_EQ(unique.size(), ids.size());
  size_t longer = 0;
  for (const std::string& id : ids) {
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.:"), std::string::npos)
        << id;
    longer += id.size() > ids[1].size();
  }
  EXPECT_GT(longer, 0u);
}

// Without the letters, of every site of a text.
std::string labels(const std::string& file, const std::string& text) {
  Diagnostics diags;
  std::string out;
  for (const std::string& id : boundary_ids(parse_sites(make_source("", file, "", text), diags)))
    out += (out.empty() ? "" : " ") + id.substr(0, id.find(':'));
  EXPECT_EQ(diags.text(), "");
  return out;
}

TEST(BoundaryIds, SayWhatIsDoneWithTheOperand) {
  EXPECT_EQ(labels("m/model.py", "x + y\na @ b\n-c\nd < e\n"),
            "model.add model.matmul model.neg model.lt");
  EXPECT_EQ(labels("model.py", "proj(x)\nF.softmax(s)\nloss.backward()\n"),
            "model.proj model.softmax model.backward");
  EXPECT_EQ(labels("model.py", "x[i]\nx[i] = v\nx += y\np.data = v\nq.shape\n"),
            "model.getitem model.setitem model.add model.set_data model.shape");
  EXPECT_EQ(labels("model.py", "for b in t: pass\na, b = t\nif c: pass\nwith d: pass\n"),
            "model.iter model.unpack model.bool model.with");
  EXPECT_EQ(labels("model.py", "@wraps\ndef f(): pass\n"), "model.wraps");
  EXPECT_EQ(labels("m/__init__.py", "f(x)\n"), "m.f");
  EXPECT_EQ(labels("m/__main__.py", "f(x)\n"), "m.f");
  EXPECT_EQ(labels("__init__.py", "f(x)\n"), "__init__.f");
}

TEST(BoundaryIds, ALongWordEndsAtAnUnderscore) {
  EXPECT_EQ(
      labels("modeling_conditional_detr_of_somebody.py", "apply_rotary_pos_emb_interleaved(x)\n"),
      "modeling_conditional.apply_rotary_pos_emb");
  EXPECT_EQ(labels("m.py", "a_averyveryveryverylongnamewithoutparts(x)\n"),
            "m.a_averyveryveryverylongn");
}

TEST(BoundaryIds, KeepApartFromThoseTaken) {
  std::vector<Site> sites = look_alikes(2);
  std::vector<std::string> ids = boundary_ids(sites);
  std::vector<std::string> others = boundary_ids(sites, {ids[0]});
  EXPECT_NE(others[0], ids[0]);
  EXPECT_EQ(others[0].substr(0, ids[0].size()), ids[0]);
  EXPECT_EQ(others[1], ids[1]);
}

TEST(BoundaryIds, LinesDoNotMatter) {
  std::vector<Site> sites = look_alikes(2), moved = sites;
  for (Site& s : moved) s.line += 40, s.start += 999;
  EXPECT_EQ(boundary_ids(sites), boundary_ids(moved));
}

TEST(StaticPlan, TemplatesOrAllCalls) {
  Built b = build("/t");
  TemplateLibrary library;
  library.templates = {{"product", "arithmetic", {"binary"}, {"*"}}};
  Plan some = static_plan(b.sources, b.sites, library, false);
  ASSERT_EQ(some.boundaries.size(), 1u);
  EXPECT_EQ(some.boundaries[0].templ, "product");
  EXPECT_EQ(some.context.size(), 2u);
  Plan calls = static_plan(b.sources, b.sites, library, true);
  EXPECT_EQ(calls.boundaries.size(), 3u);
  for (const Boundary& boundary : calls.boundaries) EXPECT_EQ(boundary.site.form, Form::call);
}

TEST(IsInteresting, ByName) {
  EXPECT_FALSE(is_interesting("aten::detach"));
  EXPECT_FALSE(is_interesting("aten::is_same_size"));
  EXPECT_FALSE(is_interesting("aten::sym_size.int"));
  EXPECT_TRUE(is_interesting("mine::size"));
  EXPECT_FALSE(is_interesting("prim::device"));
  EXPECT_TRUE(is_interesting("aten::detach_copy"));
  EXPECT_TRUE(is_interesting("aten::view"));
  EXPECT_TRUE(is_interesting("aten::empty.memory_format"));
}

}  // namespace
}  // namespace opguard
