#include "plan/trace.h"

#include "gtest/gtest.h"
#include "plan/files.h"

namespace opguard {
namespace {

std::string trace(int rank, const std::string& uses, const std::string& version = "2") {
  return "{\"opguard_trace\": " + version +
         ", \"python\": \"3.11.7\", \"torch\": \"2.13.0\", \"argv\": [\"t.py\", \"" +
         std::to_string(rank) + "\"], \"rank\": " + std::to_string(rank) +
         ", \"world\": 2, \"steps\": 3, \"complete\": true, \"activities\": 10, \"foreign\": 1,"
         " \"foreign_compute\": {\"forward\": {\"aten::mul\": 1}}, \"accumulated\": "
         "{\"aten::add_\": 2}, \"micro_batches\": {\"2\": 3}, \"errors\": 0,"
         " \"missing_packages\": [], \"roots\": [{\"package\": \"\", \"dir\": \"/t\", \"subdir\": "
         "\"\"}],"
         " \"files\": [\"/t/b.py\", \"/t/a.py\"], \"uses\": [" +
         uses + "]}";
}

std::string use(int line, int column, const std::string& callee, int order, int count) {
  return "{\"path\": \"/t/a.py\", \"scope\": \"f\", \"line\": " + std::to_string(line) +
         ", \"column\": " + std::to_string(column) + ", \"end_line\": " + std::to_string(line) +
         ", \"end_column\": " + std::to_string(column < 0 ? -1 : column + 5) +
         ", \"opcode\": \"CALL\", \"callee\": \"" + callee +
         "\", \"order\": " + std::to_string(order) + ", \"calls\": " + std::to_string(count) +
         ", \"activities\": {\"aten::" + callee + "\": " + std::to_string(count) +
         "}, \"backward\": {\"aten::mul\": 1}, \"phases\": {\"forward\": " + std::to_string(count) +
         ", \"backward\": 1}, \"compute\": {\"forward\": " + std::to_string(count) +
         "}, \"writes\": [\"arg" + std::to_string(order) + "\"], \"dtypes\": [\"f32[2]\"]}";
}

std::string error_of(const TestDir& dir) {
  llvm::Expected<Trace> result = read_traces(dir.path());
  if (result) return "";
  return llvm::toString(result.takeError());
}

TEST(Trace, UnitesProcessesByPlace) {
  TestDir dir;
  // By name rank 1 comes first: its file is the older process of the two.
  dir.write("trace-100-0.json", trace(1, use(3, 4, "relu", 0, 2) + "," + use(9, 0, "exp", 1, 1)));
  dir.write("trace-200-0.json", trace(0, use(2, 4, "mul", 0, 5) + "," + use(3, 4, "relu", 7, 2)));
  dir.write("other.json", "not ours");
  llvm::Expected<Trace> merged = read_traces(dir.path());
  ASSERT_TRUE(static_cast<bool>(merged)) << llvm::toString(merged.takeError());
  EXPECT_EQ(merged->rank, 0);
  EXPECT_EQ(merged->argv[1], "0");
  EXPECT_EQ(merged->activities, 20u);
  EXPECT_EQ(merged->foreign, 2u);
  EXPECT_EQ(merged->steps, 3u);
  EXPECT_EQ(merged->foreign_compute["forward"]["aten::mul"], 2u);
  EXPECT_EQ(merged->accumulated["aten::add_"], 4u);
  EXPECT_EQ(merged->micro_batches["2"], 6u);
  EXPECT_EQ(merged->files, (std::vector<std::string>{"/t/a.py", "/t/b.py"}));
  EXPECT_EQ(merged->roots.size(), 1u);
  ASSERT_EQ(merged->uses.size(), 3u);
  std::map<int, uint64_t> calls;
  for (const TracedUse& u : merged->uses) calls[u.line] = u.calls;
  EXPECT_EQ(calls, (std::map<int, uint64_t>{{2, 5}, {3, 4}, {9, 1}}));
  for (const TracedUse& u : merged->uses)
    if (u.line == 3) {
      EXPECT_EQ(u.activities.at("aten::relu"), 4u);
      EXPECT_EQ(u.backward.at("aten::mul"), 2u);
      EXPECT_EQ(u.compute.at("forward"), 4u);
      EXPECT_EQ(u.writes, (std::vector<std::string>{"arg7", "arg0"}));
      EXPECT_EQ(u.order, 0u);
    }
}

TEST(Trace, WithoutColumnsTheCalleeTellsUsesApart) {
  TestDir dir;
  dir.write("trace-1-0.json", trace(0, use(3, -1, "relu", 0, 2) + "," + use(3, -1, "exp", 1, 1)));
  llvm::Expected<Trace> merged = read_traces(dir.path());
  ASSERT_TRUE(static_cast<bool>(merged));
  EXPECT_EQ(merged->uses.size(), 2u);
}

TEST(Trace, UnitesDevices) {
  TestDir dir;
  auto with = [](int rank, const std::string& source) {
    std::string on_device =
        ", \"kernels\": {\"_Z3addPf\": 2, \"add\": 1}, \"kernel_phases\": {\"forward\": 3}, "
        "\"transfers\": {\"memcpy HtoD\": 1}, \"streams\": [\"cuda:0/" +
        std::to_string(rank) + "\"], \"device_ns\": 7, \"writes\"";
    std::string text = trace(rank, use(3, 4, "relu", 0, 2));
    text.replace(text.find(", \"writes\""), 10, on_device);
    std::string devices =
        ", \"devices\": [{\"type\": \"cuda\", \"source\": \"" + source +
        "\", \"clock\": \"device\", \"kernels\": 3, \"dropped\": 1}], \"foreign_kernels\": {\"\": "
        "{\"_Z1kv\": 2}}, \"accumulated_kernels\": {\"sum\": 1}, \"errors\"";
    return text.replace(text.find(", \"errors\""), 10, devices);
  };
  dir.write("trace-1-0.json", with(0, "CUPTI"));
  dir.write("trace-2-0.json", with(1, "CUPTI"));
  dir.write("trace-3-0.json", with(2, "interception"));
  llvm::Expected<Trace> merged = read_traces(dir.path());
  ASSERT_TRUE(static_cast<bool>(merged)) << llvm::toString(merged.takeError());
  ASSERT_EQ(merged->devices.size(), 2u);
  EXPECT_EQ(merged->devices[0], (TracedDevice{"cuda", "CUPTI", "device", 6, 2}));
  EXPECT_EQ(merged->foreign_kernels[""]["k"], 6u);
  EXPECT_EQ(merged->accumulated_kernels["sum"], 3u);
  const TracedUse& u = merged->uses.at(0);
  // Mangled or not: one kernel.
  EXPECT_EQ(u.kernels, (std::map<std::string, uint64_t>{{"add", 9}}));
  EXPECT_EQ(u.kernel_phases.at("forward"), 9u);
  EXPECT_EQ(u.transfers.at("memcpy HtoD"), 3u);
  EXPECT_EQ(u.streams, (std::vector<std::string>{"cuda:0/0", "cuda:0/1", "cuda:0/2"}));
  EXPECT_EQ(u.device_ns, 21u);
}

TEST(Trace, KernelNamesAreShort) {
  EXPECT_EQ(kernel_name("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfE"
                        "ESt5arrayIPcLm3EEEEviT0_T1_"),
            "at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, "
            "std::array<char*, 3ul>>");
  EXPECT_EQ(kernel_name("void a::k<(b::E)3>(int, float*)"), "a::k<(b::E)3>");
  EXPECT_EQ(kernel_name("_ZN12_GLOBAL__N_14fillEPf"), "(anonymous namespace)::fill");
  EXPECT_EQ(kernel_name("triton_poi_fused_add_0"), "triton_poi_fused_add_0");
  EXPECT_EQ(kernel_name("sm90_xmma_gemm_bf16 tail"), "sm90_xmma_gemm_bf16 tail");
  EXPECT_EQ(kernel_name(""), "");
  EXPECT_EQ(kernel_name(std::string(400, 'x')), std::string(157, 'x') + "...");
}

TEST(Trace, SaysWhatIsWrong) {
  TestDir dir;
  EXPECT_NE(error_of(dir).find("no trace-*.json"), std::string::npos);
  std::string whole = trace(0, use(3, 4, "relu", 0, 2));
  dir.write("trace-1-0.json", "[1, ");
  EXPECT_NE(error_of(dir).find("trace-1-0.json:1:5: the file is cut short"), std::string::npos)
      << error_of(dir);
  dir.write("trace-1-0.json", "hello");
  EXPECT_NE(error_of(dir).find("not JSON"), std::string::npos);
  dir.write("trace-1-0.json", trace(0, "", "7"));
  EXPECT_NE(error_of(dir).find("a trace of version 7; this opguard reads version 2"),
            std::string::npos);
  dir.write("trace-1-0.json", trace(0, "{\"path\": 3}"));
  EXPECT_NE(error_of(dir).find("'path' must be a string"), std::string::npos);
  EXPECT_NE(llvm::toString(read_traces(dir / "absent").takeError()).find("No such file"),
            std::string::npos);
}

TEST(Trace, CutAtEveryByteIsRefused) {
  TestDir dir;
  std::string whole = trace(0, use(3, 4, "relu", 0, 2));
  for (size_t size = 0; size < whole.size(); ++size) {
    dir.write("trace-1-0.json", whole.substr(0, size));
    EXPECT_NE(error_of(dir), "") << size;
  }
}

}  // namespace
}  // namespace opguard
