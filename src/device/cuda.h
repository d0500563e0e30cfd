// device/cuda.h: CUDA's table of device/plugin.h, through the driver that the program has loaded.
//
// No toolkit, no cudart and no libtorch is needed to build or to run it. The kernels are PTX, which
// the driver compiles the first time a device is met.
#pragma once

#include "device/plugin.h"

namespace opguard {

// The one table of the process. The activities_* functions are null. open() fails with ENOENT where
// no libcuda.so.1 is found. It fails with ENOSYS where that is older than 12.0 or this build has no
// kernels, with EIO where it reports an error. fingerprint() makes a device ready when it is met
// first, and never waits for the device's work. It then takes as long as the driver takes to
// compile the kernels: seconds, unless its cache has them. A device takes 5 MiB of pinned host
// memory and 8 MiB of its own.
const opguard_device_plugin* cuda_device_plugin();

}  // namespace opguard
