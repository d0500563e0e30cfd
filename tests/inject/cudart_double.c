/* libcudart.so.12 without a GPU: like the real one it finds the driver's functions by dlsym and
 * cuGetProcAddress. CUDART_DOUBLE=hidden: it launches by ways that nobody sees. */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct dim3 {
  unsigned x, y, z;
};

static int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                     void*, void**, void**);
static int (*copy)(uint64_t, const void*, size_t, void*);
static int (*run)(uint32_t, uint32_t, const char*, uint64_t, uint64_t);
static int hidden;

static void load(void) {
  if (launch) return;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
  int (*find)(const char*, void**, int, uint64_t, int*);
  find = (int (*)(const char*, void**, int, uint64_t, int*))dlsym(driver, "cuGetProcAddress_v2");
  find("cuLaunchKernel", (void**)&launch, 12000, 0, NULL);
  find("cuMemcpyHtoDAsync", (void**)&copy, 12000, 0, NULL);
  run = (int (*)(uint32_t, uint32_t, const char*, uint64_t, uint64_t))dlsym(driver,
                                                                            "cuda_double_run");
  const char* how = getenv("CUDART_DOUBLE");
  hidden = how && strcmp(how, "hidden") == 0;
  init(0);
}

/* A host function here begins with its kernel's name. */
int cudaFuncGetName(const char** name, const void* function) {
  *name = function;
  return 0;
}

int cudaLaunchKernel(const void* function, struct dim3 grid, struct dim3 block, void** args,
                     size_t shared, void* stream) {
  load();
  if (hidden) return run(0, 1, function, (uint64_t)stream, 0);
  return launch((void*)function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                (unsigned)shared, stream, args, NULL);
}

int cudaMemcpyAsync(void* to, const void* from, size_t bytes, int kind, void* stream) {
  load();
  if (hidden) return run(1, 1, "memcpy", (uint64_t)stream, 0);
  return copy((uint64_t)to, from, bytes, stream);
}

struct config {
  struct dim3 grid, block;
  size_t shared;
  void* stream;
};
int cudaLaunchKernelExC(const struct config* c, const void* function, void** args) {
  load();
  return c->shared == 7 && c->block.z == 6 ? run(0, 1, function, (uint64_t)c->stream, 0) : 1;
}
int cudaMemsetAsync(void* at, int value, size_t bytes, void* stream) {
  load();
  return value == 200 && bytes == 9 ? run(2, 1, "memset", (uint64_t)stream, 0) : 1;
}
int cudaGraphLaunch(void* graph, void* stream) {
  load();
  return graph == (void*)0x9 ? run(0, 1, "graph", (uint64_t)stream, 0) : 1;
}
int cudaStreamSynchronize(void* stream) { return stream == (void*)0x12 ? 0 : 1; }
int cudaDeviceSynchronize(void) { return 0; }
/* cuBLASLt's, which is a library of its own. */
int cublasLtMatmul(void* a, void* b, const void* c, const void* d, void* e, const void* f, void* g,
                   const void* h, const void* i, void* j, void* k, void* l, const void* m, void* n,
                   size_t o, void* p) {
  load();
  size_t sum = (size_t)a + 2 * (size_t)b + 3 * (size_t)c + 4 * (size_t)d + 5 * (size_t)e +
               6 * (size_t)f + 7 * (size_t)g + 8 * (size_t)h + 9 * (size_t)i + 10 * (size_t)j +
               11 * (size_t)k + 12 * (size_t)l + 13 * (size_t)m + 14 * (size_t)n + 15 * o +
               16 * (size_t)p;
  return sum == 1496 ? run(0, 1, "gemm", (uint64_t)p, 0) : 1; /* of 1 to 16 in order */
}
