/* SPDX-License-Identifier: Apache-2.0 */
#include "net/listen_addresses.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

static bool PRINTF(2, 3) failed(const char **error, const char *fmt, ...)
{
	static char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	*error = text;
	return false;
}

static bool
is_address(const char *s)
{
	struct in6_addr any;

	return inet_pton(AF_INET, s, &any) == 1 || inet_pton(AF_INET6, s, &any) == 1;
}

static bool
add(struct config_list *list, const char *address, const char **error)
{
	for (uint32_t i = 0; i < list->count; i++)
		if (strcmp(list->item[i], address) == 0)
			return true;
	if (list->count == CONFIG_LISTEN_MAX)
		return failed(error, "more than %d addresses to listen on", CONFIG_LISTEN_MAX);
	list->item[list->count++] = xstrdup(address);
	return true;
}

/* Names often stand for ::1 or an address outside of a container as well, which is no reason not to start. */
static bool
is_of_machine(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool fine = fd >= 0 ? bind(fd, a->ai_addr, a->ai_addrlen) == 0 || errno != EADDRNOTAVAIL
	                    : errno != EAFNOSUPPORT;

	if (fd >= 0)
		close(fd);
	return fine;
}

static const struct in6_addr *
in6_of(const struct addrinfo *a)
{
	return &((const struct sockaddr_in6 *)(const void *)a->ai_addr)->sin6_addr;
}

/* NULL: it is fit to listen on. The machine's own name may stand for those of its links, too: such an address means nothing
 * without the name of the link, which nobody has given. */
static const char *
unfit(const struct addrinfo *a)
{
	if (a->ai_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(in6_of(a)))
		return "which is an address of one link only";
	return is_of_machine(a) ? NULL : "which this machine does not have";
}

static void
text_of(const struct addrinfo *a, char out[INET6_ADDRSTRLEN])
{
	const void *p =
	    a->ai_family == AF_INET6
	        ? (const void *)in6_of(a)
	        : (const void *)&((const struct sockaddr_in *)(const void *)a->ai_addr)->sin_addr;

	if (inet_ntop(a->ai_family, p, out, INET6_ADDRSTRLEN) == NULL)
		abort(); /* there is room */
}

static bool
add_name(struct config_list *list, const char *name, const char **error)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *all = NULL;
	char address[INET6_ADDRSTRLEN] = "";
	const char *why = "which is of no kind that is known here";
	bool fine = true, any = false;
	int rc = getaddrinfo(name, NULL, &hints, &all);

	if (rc != 0)
		return failed(error,
		    "cannot listen on '%.200s': as a name it is not known: "
		    "%s",
		    name, rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
	for (const struct addrinfo *a = all; a != NULL && fine; a = a->ai_next) {
		if (a->ai_family != AF_INET && a->ai_family != AF_INET6)
			continue;
		text_of(a, address);
		why = unfit(a);
		any |= why == NULL;
		if (why == NULL)
			fine = add(list, address, error);
		else
			log_info("%s is %s as well, %s", name, address, why);
	}
	freeaddrinfo(all);
	if (fine && !any)
		return failed(error,
		    "cannot listen on '%.200s': it is %s, %s; listen on an address of the "
		    "machine, or on :: for all",
		    name, address, why);
	return fine;
}

bool
listen_addresses(const struct config_list *given, struct config_list *out, const char **error)
{
	bool fine = true;

	*out = (struct config_list){ 0 };
	for (uint32_t i = 0; i < given->count && fine; i++)
		fine = is_address(given->item[i]) ? add(out, given->item[i], error)
		                                  : add_name(out, given->item[i], error);
	if (!fine)
		listen_addresses_free(out);
	return fine;
}

void
listen_addresses_free(struct config_list *list)
{
	for (uint32_t i = 0; i < list->count; i++)
		free(list->item[i]);
	*list = (struct config_list){ 0 };
}
