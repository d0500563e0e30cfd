// runtime/fingerprint/sketch_sums_v3.cc: the loops of os1 for x86-64-v3 (AVX2).
#define OPGUARD_LEVEL v3
#define OPGUARD_VECTOR_BYTES 32
#include "runtime/fingerprint/sketch_sums.inc"
