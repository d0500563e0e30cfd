#include "patcher/patch.h"
