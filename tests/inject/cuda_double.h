/* inject/cuda_double.h: how the doubles of NVIDIA's libraries speak to each other and to tests. */
#ifndef OPGUARD_CUDA_DOUBLE_H
#define OPGUARD_CUDA_DOUBLE_H

#include <stdint.h>

/* What a call makes the device do. node: of the graph it is captured into or run for, 0: none. */
struct cuda_double_work {
  uint32_t kind;    /* 0 kernel, 1 memcpy, 2 memset, 3 synchronize */
  uint32_t runtime; /* called through the runtime, not the driver */
  const char* name;
  uint64_t stream, node;
};

typedef void (*cuda_double_listener)(const struct cuda_double_work* work);

#endif
