/* The raw memory timeline of PyTorch's profiler: small ones written here. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"

FORMAT_CASES("memory_timeline", test_pairs)
FORMAT_CASES("memory_timeline", test_writes_change_the_category)
FORMAT_CASES("memory_timeline", test_what_was_never_made)
FORMAT_CASES("memory_timeline", test_units_and_order_of_times)
FORMAT_REFUSES("memory_timeline", test_refused)
