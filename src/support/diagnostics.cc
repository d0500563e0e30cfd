#include "support/diagnostics.h"
