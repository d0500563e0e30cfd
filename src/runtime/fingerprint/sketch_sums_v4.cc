// runtime/fingerprint/sketch_sums_v4.cc: the loops of os1 for x86-64-v4 (AVX-512).
#define OPGUARD_LEVEL v4
#define OPGUARD_VECTOR_BYTES 64
#include "runtime/fingerprint/sketch_sums.inc"
