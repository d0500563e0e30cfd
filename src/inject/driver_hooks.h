// inject/driver_hooks.h: our functions in place of the driver's that launch.
#pragma once

namespace opguard {

// `found` is what the driver gives under `name` ("cuLaunchKernel", "cuMemcpyHtoDAsync_v2"): ours in
// its place, where it is one we follow, else `found`.
void* hooked_driver_symbol(const char* name, void* found);

}  // namespace opguard
