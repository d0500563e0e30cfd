// A double of libcuda.so.1 for machines without a GPU: the driver's functions that opguard and the
// tests' programs call, over host memory.
//
// Streams are queues, each run in order by a thread of its own. A graph is the list of what was
// captured, stream by stream, and its streams run side by side. The kernels of opguard are run by
// their host twin. What the driver forbids fails here with its error: unsafe calls during a
// capture, a stream used in another context, PTX newer than the driver. Two devices, 2
// multiprocessors each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" {
// The driver's functions, as cuda.h declares them, for the program that a test plays.
int cuInit(unsigned flags);
int cuDeviceGet(int* device, int ordinal);
int cuDevicePrimaryCtxRetain(void** context, int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuCtxGetCurrent(void** context);
int cuCtxSetCurrent(void* context);
int cuMemAlloc_v2(uint64_t* address, size_t bytes);
int cuMemFree_v2(uint64_t address);
int cuStreamCreate(void** stream, unsigned flags);
int cuStreamDestroy_v2(void* stream);
int cuStreamSynchronize(void* stream);
int cuCtxSynchronize();
int cuEventCreate(void** event, unsigned flags);
int cuEventRecord(void* event, void* stream);
int cuStreamWaitEvent(void* stream, void* event, unsigned flags);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream);
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream);
int cuStreamBeginCapture_v2(void* stream, int mode);
int cuStreamEndCapture(void* stream, void** graph);
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags);
int cuGraphLaunch(void* exec, void* stream);

// The double's own.
// Names of the functions called since the last call of it, separated by spaces.
const char* cuda_double_calls();
void cuda_double_version(int version);
// Every call of that function fails with this error; null: none does.
void cuda_double_fail(const char* function, int error);
// Work of a stream waits until it is let go.
void cuda_double_hold(void* stream, int held);
// Kernels launched since the process began.
uint64_t cuda_double_launches();
}

constexpr unsigned kStreamNonBlocking = 1;
constexpr int kCaptureGlobal = 0;
