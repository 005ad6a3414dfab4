/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_app_talk.c - conversations in files: numbers are digits, and nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "talk.h"

static const char *read_as(const char *rest) {
    char text[512];
    tg_talk talk = { 0 };
    tg_talk_settings settings = { 0 };
    snprintf(text, sizeof text, "tinygpt chat 1\n%s", rest);
    const char *fault = tg_talk_read(&talk, &settings, text, strlen(text));
    tg_talk_free(&talk);
    return fault;
}

static void numbers_are_digits(void **state) {
    (void)state;
    assert_null(read_as("seed 7 2\nuser 2\nHi\nassistant 3\nYes\n"));
    assert_null(read_as("seed 18446744073709551615 0\n"));
    static const char *const wrong[] = {
        "seed -1 2\n",
        "seed 7 -2\n",
        "seed +7 2\n",
        "seed 7\n",
        "seed 7 2 3\n",
        "seed x 2\n",
        "user -1\nHi\n",
        "user +2\nHi\n",
        "user  2\nHi\n",
        "user 2x\nHi\n",
        "user\nHi\n",
        "users 2\nHi\n",
        "use 2\nHi\n",
        "user 3\nHi\n",
        " user 2\nHi\n",
        "seed 18446744073709551616 0\n",
        "user 18446744073709551618\nHi\n",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (!read_as(wrong[i])) fail_msg("taken: %s", wrong[i]);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(numbers_are_digits) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
