/* Stack frames, as snapshots name them. */
#ifndef WORKLOADS_FORMATS_TORCH_FRAMES_H
#define WORKLOADS_FORMATS_TORCH_FRAMES_H

#include <stdbool.h>

/* Is a file the user's own code, rather than a library's? */
bool frame_is_users(const char *file);

#endif
