/* The words that say no more than that memory ran out, and what they have in common with others. */
#pragma once

#include "sim/explain/message_forms.h"

/* In German, French, Spanish, Portuguese, Italian and Russian: memory, and words that say that
 * there was too little of it. */
#define OTHER_MEMORY                                                                               \
    "|speicher|grafikspeicher|videospeicher|m\xc3\xa9moire|memoria|mem\xc3\xb3ria|"                \
    "\xd0\xb0\xd0\xbc\xd1\x8f\xd1\x82"
#define OTHER_TOO_LITTLE                                                                           \
    "|reichtnicht|nichtgen|istvoll|insuffisant|insuficient|ersch\xc3\xb6pft|agotad|esgotad|"       \
    "esaurit|"                                                                                     \
    "\xc3\xa9puis\xc3\xa9|"                                                                        \
    "\xd0\xb5\xd1\x85\xd0\xb2\xd0\xb0\xd1\x82|"                                                    \
    "\xd0\xb5\xd0\xb4\xd0\xbe\xd1\x81\xd1\x82\xd0\xb0\xd1\x82"

/* In Chinese: memory of a card, memory of the host, and words that say that it was used up. */
#define CHINESE_VRAM      "\xe6\x98\xbe\xe5\xad\x98"
#define CHINESE_RAM       "\xe5\x86\x85\xe5\xad\x98"
#define CHINESE_CARD_RAM  "\xe6\x98\xbe\xe5\x8d\xa1" CHINESE_RAM
#define CHINESE_CARDS_RAM "\xe6\x98\xbe\xe5\x8d\xa1\xe7\x9a\x84" CHINESE_RAM
#define CHINESE_USED_UP                                                                            \
    "\xe4\xb8\x8d\xe8\xb6\xb3|"                                                                    \
    "\xe4\xb8\x8d\xe5\xa4\x9f|"                                                                    \
    "\xe6\xba\xa2\xe5\x87\xba|"                                                                    \
    "\xe7\x88\x86|"                                                                                \
    "\xe8\x80\x97\xe5\xb0\xbd|"                                                                    \
    "\xe5\x8d\xa0\xe6\xbb\xa1|"                                                                    \
    "\xe7\x82\xb8"

/* The patterns have no figures; those before others are taken before them. */
extern const struct message_form message_bares[];
extern const size_t message_bare_count;

/* How to find the cause, for some of them. */
extern const char message_how_driver[];
extern const char message_how_driver_of_others[];
extern const char message_how_killed[];
extern const char message_how_limit[];
extern const char message_how_ray[];
extern const char message_how_rmm[];
