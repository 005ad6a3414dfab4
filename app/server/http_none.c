/*
 * http_none.c - stands in for http_mhd.c where libmicrohttpd was not found when the program was
 * built: all else works without it, and `tinygpt serve` says what is missing.
 */
#include "server/http.h"

const char *tg_http_missing(void) {
    return "this program was built without a web server: install libmicrohttpd (Debian: apt-get "
           "install libmicrohttpd-dev pkg-config), then run make build";
}

tg_http *tg_http_start(int socket, unsigned port, const tg_site *site) {
    (void)socket, (void)port, (void)site;
    return NULL;
}

void tg_http_stop(tg_http *http) { (void)http; }
