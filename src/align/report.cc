#include "align/report.h"
