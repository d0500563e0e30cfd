// runtime/fingerprint/lane_sums_plain.cc: the loops for any processor: SSE2, NEON or none.
#define OPGUARD_LEVEL plain
#define OPGUARD_VECTOR_BYTES 16
#include "runtime/fingerprint/lane_sums.inc"
