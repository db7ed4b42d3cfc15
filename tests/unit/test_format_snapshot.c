/* PyTorch's memory snapshots as JSON: marks, pinned memory, pools that are inferred, changes of
 * settings, odd histories. Every layout of them: tests/cli/test_snapshot_layouts.sh. */
#include "tests/support/format_rig.h"
#include "tests/support/test.h"

FORMAT_CASES("format_snapshot", annotations_become_marks)
FORMAT_CASES("format_snapshot", pinned_memory_is_merged)
FORMAT_CASES("format_snapshot", pools_are_inferred)
FORMAT_CASES("format_snapshot", changes_of_settings_are_notes)
FORMAT_CASES("format_snapshot", what_is_no_change_of_settings_stays_a_mark)
FORMAT_CASES("format_snapshot", settings_are_taken_one_by_one)
FORMAT_CASES("format_snapshot", odd_histories)
FORMAT_REFUSES("format_snapshot", late_entries_are_refused)
