#ifndef BOX_TEST_UNIT_H
#define BOX_TEST_UNIT_H

/* cmocka and the headers that it wants before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#endif
