// tests/fuzz/short_form.cc: a fuzz target without libFuzzer, for every compiler and every test run.
//
//   plan_fuzz_short COUNT SEED FOLDER
//
// runs the target on COUNT inputs made from the files of FOLDER by a fixed generator. They are
// whole, cut, with bytes flipped, pieces doubled, dropped, moved, or taken from another file. The
// same arguments make the same inputs. It prints {"inputs": N, "slowest_ms": M}; an input that
// breaks something is a crash, and lies in FOLDER.crash. Nothing guides it to new code:
// bench/torture.py runs the same targets at length under libFuzzer.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxInput = 65536;
constexpr rlim_t kMaxMemory = rlim_t{2} << 30;  // an allocation beyond it ends in bad_alloc

std::string g_input, g_crash;

void keep_input(int signal) {
  std::ofstream(g_crash, std::ios::binary) << g_input;
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::vector<std::string> read_seeds(const char* folder) {
  std::vector<fs::path> paths(fs::directory_iterator(folder), fs::directory_iterator{});
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const fs::path& path : paths) {
    std::ifstream in(path, std::ios::binary);
    seeds.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return seeds;
}

class Inputs {
 public:
  Inputs(std::vector<std::string> seeds, uint64_t seed) : seeds_(std::move(seeds)), random_(seed) {}

  std::string next() {
    std::string text = seeds_[below(seeds_.size())];
    for (size_t edits = below(5); edits > 0; --edits) edit(text);
    return text.substr(0, kMaxInput);
  }

 private:
  size_t below(size_t n) { return n == 0 ? 0 : random_() % n; }

  std::string piece(const std::string& text) {
    const size_t at = below(text.size());
    return text.substr(at, 1 + below(std::min<size_t>(64, text.size() - at)));
  }

  void edit(std::string& text) {
    if (text.empty()) text = seeds_[below(seeds_.size())];
    const size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random_());
        break;
      case 1:
        if (!text.empty()) text[at] ^= static_cast<char>(1u << below(8));
        break;
      case 2:
        text.erase(at, 1 + below(64));
        break;
      case 3:
        text.insert(at, piece(text));
        break;
      case 4:
        text.insert(at, piece(seeds_[below(seeds_.size())]));
        break;
      default:
        text.resize(at);
    }
  }

  std::vector<std::string> seeds_;
  std::mt19937_64 random_;
};

}  // namespace

int main(int argc, char** argv) {
  opguard::require(argc == 4, "usage: COUNT SEED FOLDER");
  std::vector<std::string> seeds = read_seeds(argv[3]);
  opguard::require(!seeds.empty(), "the folder holds files");
  const rlimit memory{kMaxMemory, kMaxMemory};
  setrlimit(RLIMIT_AS, &memory);
  g_crash = std::string(argv[3]) + ".crash";
  for (int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, keep_input);
  const long count = std::atol(argv[1]);
  Inputs inputs(std::move(seeds), static_cast<uint64_t>(std::atoll(argv[2])));
  std::chrono::steady_clock::duration slowest{};
  for (long i = 0; i < count; ++i) {
    g_input = inputs.next();
    const auto begin = std::chrono::steady_clock::now();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(g_input.data()), g_input.size());
    slowest = std::max(slowest, std::chrono::steady_clock::now() - begin);
  }
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(slowest).count();
  std::printf("{\"inputs\": %ld, \"slowest_ms\": %ld}\n", count, static_cast<long>(ms));
}
