// runtime/fingerprint/square_sums_v4.cc: sums of squares for x86-64-v4 (AVX-512).
#define OPGUARD_LEVEL v4
#include "runtime/fingerprint/square_sums.inc"
