/* The profiles that are part of the program: the lines of a profile file each, NULL-ended.
 * sim/README.md describes the format. */
#ifndef SIM_PROFILES_BUILTIN_H
#define SIM_PROFILES_BUILTIN_H

extern const char *const sim_profile_h100[];
extern const char *const sim_profile_bump[];

#endif
