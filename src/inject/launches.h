// inject/launches.h: device activities without CUPTI: the launches themselves, caught on their way
// to the driver. The library must have been preloaded (LD_PRELOAD): then the program's libraries
// bind these names to it:
//  - the runtime's cudaLaunchKernel, cudaMemcpyAsync... and cublasLtMatmul, where they are called
//    through libcudart.so and libcublasLt.so;
//  - dlsym, by which others find the driver's functions, cuGetProcAddress first of all, and get
//    ours. They are the runtime, shared or linked into a library, Triton's launchers and torch.
// An outer call counts only where no inner one was seen. Times are the host's, of the call.
#pragma once

namespace opguard::launches {

// Whether the program's calls come here.
bool preloaded();

void start();
void stop();
bool collecting();

}  // namespace opguard::launches
