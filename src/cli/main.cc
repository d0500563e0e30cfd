#include "cli/program.h"

int main(int argc, char** argv) { return opguard::run_program(argc, argv); }
