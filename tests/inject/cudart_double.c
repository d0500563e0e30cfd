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
