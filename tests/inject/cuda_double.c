/* libcuda.so.1 without a GPU: the entry points that launches, Triton and the runtime use. Work is
 * told to the listener (the double of CUPTI). Stream 0xca is being captured. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_double.h"

static cuda_double_listener listener;
static int initialised;
static unsigned launches, synchronizations;

void cuda_double_listen(cuda_double_listener heard) { listener = heard; }
unsigned cuda_double_launches(void) { return launches; }
unsigned cuda_double_synchronizations(void) { return synchronizations; }

int cuda_double_run(uint32_t kind, uint32_t runtime, const char* name, uint64_t stream,
                    uint64_t node) {
  struct cuda_double_work work = {kind, runtime, name, stream, node};
  if (kind == 0) ++launches;
  if (listener) listener(&work);
  return 0;
}

/* As the driver does: the library named by the variable, once, inside cuInit. */
int cuInit(unsigned flags) {
  const char* path = getenv("CUDA_INJECTION64_PATH");
  if (initialised++ || !path || !*path) return 0;
  void* library = dlopen(path, RTLD_LAZY);
  int (*begin)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
  if (!begin) fprintf(stderr, "driver: %s\n", dlerror());
  return begin && begin() ? 0 : 0;
}

struct config {
  unsigned grid[3], block[3], shared;
  void* stream;
};

int cuLaunchKernel(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, void* stream, void** args, void** extra) {
  /* That the arguments arrived is what a wrapper can spoil. */
  if (gx != 1 || gy != 2 || gz != 3 || bx != 4 || by != 5 || bz != 6 || shared != 7) return 1;
  return cuda_double_run(0, 0, f, (uint64_t)stream, 0);
}
int cuLaunchKernel_ptsz(void* f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                        unsigned bz, unsigned shared, void* stream, void** args, void** extra) {
  return cuda_double_run(0, 0, f, 0x70, 0);
}
int cuLaunchKernelEx(const struct config* c, void* f, void** args, void** extra) {
  if (c->grid[2] != 3 || c->block[2] != 6) return 1;
  return cuda_double_run(0, 0, f, (uint64_t)c->stream, 0);
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  return cuda_double_run(1, 0, "memcpy", (uint64_t)stream, 0);
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void* stream) {
  return value == 200 ? cuda_double_run(2, 0, "memset", (uint64_t)stream, 0) : 1;
}
int cuStreamSynchronize(void* stream) {
  return cuda_double_run(3, 0, "stream", (uint64_t)stream, 0);
}
/* As from 13.0 on, where the plain name gives it. */
int cuCtxSynchronize_v2(void* context) {
  return context == (void*)0xc ? cuda_double_run(3, 0, "context", 0, 0) : 1;
}
/* A version that nobody has heard of. */
int cuStreamSynchronize_v9(int a, int b, int c, int d, int e, int f, int g) {
  return a + b + c + d + e + f + g == 28 ? 0 : 1;
}
int cuGraphLaunch(void* graph, void* stream) {
  return cuda_double_run(0, 0, "graph", (uint64_t)stream, (uint64_t)graph);
}
/* A function here is its own name. */
int cuModuleGetFunction(void** f, void* module, const char* name) {
  *f = (void*)name;
  return 0;
}
int cuFuncGetName(const char** name, void* f) {
  *name = f;
  return 0;
}
int cuCtxGetDevice(int* device) {
  *device = 1;
  return 0;
}
int cuStreamIsCapturing(void* stream, int* status) {
  *status = stream == (void*)0xca;
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13010;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  *active = device == 1;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = (void*)(uint64_t)(device + 1);
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int device) { return 0; }
int cuCtxPushCurrent_v2(void* context) { return 0; }
int cuCtxPopCurrent_v2(void** context) { return 0; }
int cuCtxSynchronize(void) {
  ++synchronizations;
  return 0;
}

int cuGetProcAddress_v2(const char* name, void** found, int version, uint64_t flags, int* status) {
  char whole[128];
  void* self = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (strcmp(name, "cuMemcpyHtoDAsync") == 0) name = "cuMemcpyHtoDAsync_v2";
  if (strcmp(name, "cuCtxSynchronize") == 0 && version >= 13000) name = "cuCtxSynchronize_v2";
  if (strcmp(name, "cuStreamSynchronize") == 0 && version >= 19000) name = "cuStreamSynchronize_v9";
  if (strcmp(name, "cuGetProcAddress") == 0 && version >= 12000) name = "cuGetProcAddress_v2";
  snprintf(whole, sizeof whole, "%s%s", name, flags == 2 ? "_ptsz" : "");
  *found = dlsym(self, whole);
  if (status) *status = *found ? 0 : 1;
  return 0;
}
int cuGetProcAddress(const char* name, void** found, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, found, version, flags, NULL);
}
