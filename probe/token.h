#pragma once

/* A fresh random word for each run, so that no answer to an older packet can pass for one to this. */
enum { TOKEN_TEXT = 29 };

/* "box-probe-" and 18 hexadecimal digits; `text` has TOKEN_TEXT bytes. False where the kernel has no randomness. */
_Bool token_make(char text[TOKEN_TEXT]);
/* A random number below `limit`. */
unsigned token_random(unsigned limit);
