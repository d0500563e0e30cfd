/* A library of a program's, linked with the runtime, as torch's are; and a launcher like Triton's. */
#include <dlfcn.h>
#include <stddef.h>

struct dim3 {
  unsigned x, y, z;
};
int cudaLaunchKernel(const void*, struct dim3, struct dim3, void**, size_t, void*);
int cudaMemcpyAsync(void*, const void*, size_t, int, void*);

int launch(const char* kernel, void* stream) {
  struct dim3 grid = {1, 2, 3}, block = {4, 5, 6};
  return cudaLaunchKernel(kernel, grid, block, NULL, 7, stream);
}

int copy(void* stream) { return cudaMemcpyAsync(NULL, NULL, 8, 1, stream); }

int launch_directly(const char* kernel, void* stream) {
  struct {
    unsigned grid[3], block[3], shared;
    void* stream;
  } config = {{1, 2, 3}, {4, 5, 6}, 7, stream};
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  int (*find)(void**, void*, const char*);
  int (*go)(const void*, void*, void**, void**);
  void* function = NULL;
  find = (int (*)(void**, void*, const char*))dlsym(driver, "cuModuleGetFunction");
  go = (int (*)(const void*, void*, void**, void**))dlsym(driver, "cuLaunchKernelEx");
  return find(&function, NULL, kernel) || go(&config, function, NULL, NULL);
}

/* As Triton's driver module: linked with the driver. */
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   void*, void**, void**);
int cuModuleGetFunction(void**, void*, const char*);
int launch_linked(const char* kernel, void* stream) {
  void* function = NULL;
  return cuModuleGetFunction(&function, NULL, kernel) ||
         cuLaunchKernel(function, 1, 2, 3, 4, 5, 6, 7, stream, NULL, NULL);
}

/* What RTLD_NEXT and RTLD_DEFAULT find depends on who asks. */
void* next_of_launch(void) { return dlsym((void*)-1l, "cudaLaunchKernel"); }

/* Functions by the driver's own table, of versions old and new; 0: each got its arguments. */
int versions(void) {
  int (*find)(const char*, void**, int, unsigned long, int*);
  int (*again)(const char*, void**, int, unsigned long, int*);
  int (*wait)(void*), (*new_wait)(int, int, int, int, int, int, int);
  int (*per_thread)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                    void*, void**, void**);
  int (*set)(unsigned long, unsigned char, unsigned long, void*);
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  *(void**)&find = dlsym(driver, "cuGetProcAddress_v2");
  find("cuGetProcAddress", (void**)&again, 12000, 0, NULL);
  again("cuCtxSynchronize", (void**)&wait, 13000, 0, NULL);
  again("cuStreamSynchronize", (void**)&new_wait, 19000, 0, NULL);
  again("cuLaunchKernel", (void**)&per_thread, 12000, 2, NULL);
  again("cuMemsetD8Async", (void**)&set, 12000, 0, NULL);
  return wait((void*)0xc) | new_wait(1, 2, 3, 4, 5, 6, 7) | set(0, 200, 1, NULL) |
         per_thread("per_thread_kernel", 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL);
}

int cudaLaunchKernelExC(const void*, const void*, void**);
int cudaMemsetAsync(void*, int, size_t, void*);
int cudaGraphLaunch(void*, void*);
int cudaStreamSynchronize(void*);
int cudaDeviceSynchronize(void);
int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const void*, void*, size_t, void*);

/* 0: each got its arguments. */
int runtime_calls(const char* kernel) {
  struct {
    struct dim3 grid, block;
    size_t shared;
    void* stream;
  } config = {{1, 2, 3}, {4, 5, 6}, 7, NULL};
  void* n[17];
  for (size_t i = 0; i < 17; ++i) n[i] = (void*)i;
  return cudaLaunchKernelExC(&config, kernel, NULL) | cudaMemsetAsync(NULL, 200, 9, NULL) |
         cudaGraphLaunch((void*)9, NULL) | cudaStreamSynchronize((void*)0x12) |
         cudaDeviceSynchronize() |
         cublasLtMatmul(n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9], n[10], n[11], n[12],
                        n[13], n[14], 15, n[16]);
}
