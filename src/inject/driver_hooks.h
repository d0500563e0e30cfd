// inject/driver_hooks.h: our functions in place of the driver's that launch.
//
//   the program     dlsym("cuLaunchKernel"), cuGetProcAddress, or a library's own pointer
//   it gets         ours: notes the launch under the running expression, then the driver's
//
// This is how kernels are seen where CUPTI is not there, or another tool holds it. Counterexample:
// a time of the device. The host's time of the call is noted, and the trace says so (`clock:
// host`).
#pragma once

namespace opguard {

// `found` is what the driver gives under `name` ("cuLaunchKernel", "cuMemcpyHtoDAsync_v2"): ours in
// its place, where it is one we follow, else `found`.
void* hooked_driver_symbol(const char* name, void* found);

}  // namespace opguard
