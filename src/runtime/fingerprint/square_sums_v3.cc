// runtime/fingerprint/square_sums_v3.cc: sums of squares for x86-64-v3 (AVX2).
#define OPGUARD_LEVEL v3
#include "runtime/fingerprint/square_sums.inc"
