// runtime/fingerprint/square_sums_plain.cc: sums of squares for the plain instruction set.
#define OPGUARD_LEVEL plain
#include "runtime/fingerprint/square_sums.inc"
