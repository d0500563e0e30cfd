#include "plan/plan.h"

#include <sstream>

#include "gtest/gtest.h"
#include "plan/files.h"

namespace opguard {
namespace {

Plan sample() {
  Plan plan;
  plan.opguard = "0.1.0";
  plan.python = "3.11.7";
  plan.torch = "2.13.0+cpu";
  plan.command = {"python", "train.py", "--name=\"ä\n\""};
  plan.packages = {"timm"};
  plan.coverage = {{"forward", {4000, 3990, 0}}, {"backward", {1120, 1111, 40}}};
  Boundary b;
  b.id = "rope.mul:q7k2";
  b.site.package = "timm";
  b.site.file = "model/rope.py";
  b.site.start = 512, b.site.end = 520;
  b.site.operand_start = 512, b.site.operand_end = 514;
  b.site.line = 15, b.site.column = 22, b.site.end_line = 15, b.site.end_column = 30;
  b.site.form = Form::binary;
  b.site.callee = "*";
  b.site.receiver = "x1";
  b.site.scope = "rotate";
  b.site.targets = {"y"};
  b.site.arguments = {"name:cos"};
  b.site.order = 41;
  b.text = "x1 * cos";
  b.templ = "mul";
  b.tags = {{"callee:*", 3.0}, {"scope:rotate", 0.1}};
  b.activities = {{"aten::mul.Tensor", 24}};
  b.backward = {{"aten::sum.dim_IntList", 8}};
  b.phases = {{"forward", 16}};
  b.order = 17;
  b.calls = 24;
  plan.boundaries.push_back(b);
  b.id = "rope.iter:zz";
  b.backward.clear();
  b.kernels = {{"at::native::add<float>", 12}};
  b.transfers = {{"memcpy HtoD", 2}};
  b.writes = {"arg0", "out"};
  b.mark = "step";
  b.site.form = Form::iterate;
  plan.boundaries.push_back(b);
  for (uint32_t order : {3u, 9u}) {
    Site s;
    s.file = "model/rope.py";
    s.scope = order == 3 ? "rotate" : "other";
    s.order = order;
    s.start = order * 10, s.end = order * 10 + 4;
    s.callee = "print";
    s.arguments = {"literal:1"};
    s.targets = {"t"};
    plan.context.push_back(s);
  }
  for (uint32_t k = 1; k <= 20; ++k) plan.elsewhere.push_back(k * 0x01020304u);
  plan.unwrapped = {{"", "model/rope.py", 9, "attribute read", "backward", 3}};
  plan.foreign = {{"forward", "aten::mul.Tensor", 16}};
  plan.devices = {{"cuda: CUPTI API 28"}, 14, 12, 3, {{"lost", 2}}};
  return plan;
}

std::string read_text(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

struct Outcome {
  std::string error, diagnostics;
  size_t count = 0;
};

Outcome try_read(const TestDir& dir, const std::string& text) {
  dir.write("plan.json", text);
  Diagnostics diags;
  llvm::Expected<Plan> plan = read_plan(dir / "plan.json", diags);
  Outcome out{"", diags.text(), diags.items().size()};
  if (!plan) out.error = llvm::toString(plan.takeError());
  return out;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Plan, RoundTrip) {
  TestDir dir;
  Plan plan = sample();
  ASSERT_FALSE(static_cast<bool>(write_plan(plan, dir / "plan.json")));
  Diagnostics diags;
  llvm::Expected<Plan> again = read_plan(dir / "plan.json", diags);
  ASSERT_TRUE(static_cast<bool>(again)) << diags.text();
  EXPECT_EQ(*again, plan) << dump(*again);
  // Nothing is left beside it.
  size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir.path()))
    ++files;
  EXPECT_EQ(files, 1u);
}

TEST(Plan, EmptyRoundTrip) {
  TestDir dir;
  ASSERT_FALSE(static_cast<bool>(write_plan(Plan(), dir / "plan.json")));
  Diagnostics diags;
  llvm::Expected<Plan> again = read_plan(dir / "plan.json", diags);
  ASSERT_TRUE(static_cast<bool>(again)) << diags.text();
  EXPECT_EQ(*again, Plan());
}

TEST(Plan, CutAtEveryByteGivesOneDiagnostic) {
  TestDir dir;
  ASSERT_FALSE(static_cast<bool>(write_plan(sample(), dir / "whole.json")));
  std::string whole = read_text(dir / "whole.json");
  while (!whole.empty() && whole.back() == '\n') whole.pop_back();
  for (size_t size = 0; size < whole.size(); ++size) {
    Outcome out = try_read(dir, whole.substr(0, size));
    EXPECT_NE(out.error, "") << size;
    EXPECT_EQ(out.count, 1u) << size << out.diagnostics;
  }
}

TEST(Plan, FaultsAreNamedAtTheirPlace) {
  TestDir dir;
  ASSERT_FALSE(static_cast<bool>(write_plan(sample(), dir / "whole.json")));
  std::string whole = read_text(dir / "whole.json");
  struct Case {
    std::string from, to, message;
  };
  for (const Case& c : std::vector<Case>{
           {"\"opguard_plan\": 2", "\"opguard_plan\": 1",
            ":1:18: error: a plan of version 1; this opguard reads version 2"},
           {"\"opguard_plan\"", "\"opgard_plan\"", ":1:1: error: not a plan"},
           {"01020304 02040608", "01020304 0204060", "a line must be keys of 8 hexadecimal digits"},
           {"01020304 02040608", "01020304  2040608",
            "a line must be keys of 8 hexadecimal digits"},
           {"01020304 02040608", "01020304 0204060x",
            "a line must be keys of 8 hexadecimal digits"},
           {"01020304 02040608", "02040608 01020304",
            "a line must be keys of 8 hexadecimal digits"},
           {"\"line\":15", "\"line\":\"15\"", "'line' must be a whole number"},
           {"\"line\":15", "\"line\":-15", "'line' is out of range"},
           {"\"callee\":\"*\"", "\"calee\":\"*\"", "did you mean 'callee'?"},
           {"\"form\":\"binary\"", "\"form\":\"binery\"", "did you mean 'binary'?"},
           {"[\"callee:*\",3.0]", "[\"callee:*\"]", "a tag must be [\"name\", weight]"},
           {"rope.iter:zz", "rope.mul:q7k2", "boundary 'rope.mul:q7k2' is given twice"},
           {"rope.iter:zz", "rope iter\\u001b", "a boundary id has only"},
           {"\"accumulated\":40", "\"accumulated\":-1", "'accumulated' is out of range"},
           {"\"mark\":\"step\"", "\"mark\":\"stp\"", "did you mean 'step'?"},
           {"\"calls\":24", "\"calls\":24,\"calls\":25", "field 'calls' is given twice"},
           {",\"calls\":24", "", "missing field 'calls'"},
       }) {
    Outcome out = try_read(dir, replaced(whole, c.from, c.to));
    EXPECT_NE(out.error, "") << c.to;
    EXPECT_NE(out.diagnostics.find(c.message), std::string::npos) << c.message << "\n"
                                                                  << out.diagnostics;
  }
  Diagnostics diags;
  EXPECT_NE(llvm::toString(read_plan(dir / "absent.json", diags).takeError()).find("No such file"),
            std::string::npos);
  EXPECT_FALSE(diags.has_errors());
}

TEST(Plan, WritesAllOrNothing) {
  TestDir dir;
  llvm::Error error = write_plan(sample(), dir / "absent/plan.json");
  EXPECT_NE(llvm::toString(std::move(error)).find("cannot write"), std::string::npos);
}

}  // namespace
}  // namespace opguard
