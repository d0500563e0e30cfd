#include "support/source.h"
