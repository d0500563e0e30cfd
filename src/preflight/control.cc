#include "preflight/control.h"

#include <cstdlib>

namespace opguard {
namespace {

// The reasons are in docs/guide/determinism.md.
constexpr const char* kControls[][2] = {
    {"PYTHONHASHSEED", "0"},
    {"CUBLAS_WORKSPACE_CONFIG", ":16:8"},
    {"NVIDIA_TF32_OVERRIDE", "0"},
    {"MKL_CBWR", "AUTO"},
    {"NCCL_ALGO", "Ring"},
    {"NCCL_PROTO", "Simple"},
    {"NCCL_NVLS_ENABLE", "0"},
    {"NCCL_COLLNET_ENABLE", "0"},
    {"TORCHINDUCTOR_MAX_AUTOTUNE", "0"},
    {"TORCHINDUCTOR_MAX_AUTOTUNE_GEMM", "0"},
    {"TORCHINDUCTOR_COORDINATE_DESCENT_TUNING", "0"},
    {"TORCHINDUCTOR_DETERMINISTIC", "1"},
    {"TORCHINDUCTOR_EMULATE_PRECISION_CASTS", "1"},
    {"TRITON_CACHE_AUTOTUNING", "1"},
    {"FLASH_ATTENTION_DETERMINISTIC", "1"},
    {"NVTE_ALLOW_NONDETERMINISTIC_ALGO", "0"},
};

}  // namespace

Variables control_environment(uint64_t seed) {
  Variables out = {{"OPGUARD_DETERMINISTIC", std::to_string(seed)}};
  std::string ours;
  for (const auto& [name, value] : kControls) {
    // Set to "" counts as set: the user has decided.
    if (std::getenv(name)) continue;
    out.emplace_back(name, value);
    ours += (ours.empty() ? "" : ",") + std::string(name);
  }
  out.emplace_back("OPGUARD_CONTROLLED", ours);
  return out;
}

}  // namespace opguard
