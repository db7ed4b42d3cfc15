/* The built-in profiles. Each is a file of this folder, NAME.profile, as `allocrig calibrate`
 * writes it; the Makefile makes this table of them. sim/profiles/README.md describes the format. */
#ifndef SIM_PROFILES_BUILTIN_H
#define SIM_PROFILES_BUILTIN_H

struct sim_builtin_profile {
    const char *name;
    const char *const *lines; /* ends with NULL */
};

/* In the order of names; ends with a NULL name. */
extern const struct sim_builtin_profile sim_builtin_profiles[];

#endif
