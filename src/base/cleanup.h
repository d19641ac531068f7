#ifndef BOX_BASE_CLEANUP_H
#define BOX_BASE_CLEANUP_H

/* Scope-bound ownership: the only cleanup mechanism of the tree.
 *
 *   CLEANUP(fd_closep) int fd = -1;
 *   CLEANUP(freep) char *name = xstrdup("a");
 *   return steal(&name);
 */
#define CLEANUP(function) __attribute__((cleanup(function)))

/* Declares `void NAMEp(TYPE *pointer)`, the cleanup handler over `void NAME(TYPE)`. NAME takes NULL. */
#define DEFINE_CLEANUP(type, function)                                                                               \
    static inline void function##p(type *pointer)                                                                    \
    {                                                                                                                \
        function(*pointer);                                                                                          \
    }

/* Moves ownership out of a variable: yields its value and leaves NULL behind. */
#define steal(pointer)                                                                                               \
    __extension__({                                                                                                  \
        __typeof__(*(pointer)) stolen_value = *(pointer);                                                            \
        *(pointer) = NULL;                                                                                           \
        stolen_value;                                                                                                \
    })

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Checks the arguments of a printf-like function. */
#define PRINTF_LIKE(text, first) __attribute__((format(printf, text, first)))

#endif
