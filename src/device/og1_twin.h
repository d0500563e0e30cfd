// device/og1_twin.h: the fingerprint kernel run by the host, block after block, for machines
// without a device and for tests. Everything but the threads' concurrency is the kernel's own code.
#pragma once

#include "device/og1_job.h"

namespace opguard::device {

// All blocks of a launch; its addresses are the host's. One thread; others may run other launches.
// plain: by the kernel of plain tensors (Plan::plain()).
template <typename Launch>
void run_on_host(const Launch& launch, uint32_t blocks, bool plain);

extern template void run_on_host(const SmallLaunch&, uint32_t, bool);
extern template void run_on_host(const LargeLaunch&, uint32_t, bool);

}  // namespace opguard::device
