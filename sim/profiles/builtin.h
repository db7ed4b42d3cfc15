/* The profiles that are part of the program. Each is a file of this folder, NAME.profile, as
 * `allocrig calibrate` writes it; the Makefile turns them into this table. sim/README.md
 * describes the format. */
#ifndef SIM_PROFILES_BUILTIN_H
#define SIM_PROFILES_BUILTIN_H

struct sim_builtin_profile {
    const char *name;
    const char *const *lines; /* ends with NULL */
};

/* In the order of their names; ends with a NULL name. */
extern const struct sim_builtin_profile sim_builtin_profiles[];

#endif
