/* SPDX-License-Identifier: Apache-2.0 */
#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static const uint8_t signature[12] = "\r\n\r\n\0\r\nQUIT\n";
static const char line_begin[6] = { 'P', 'R', 'O', 'X', 'Y', ' ' };

enum { V2_HEAD = 16, V2_LOCAL = 0x20, V2_PROXY = 0x21, V2_V4 = 1, V2_V6 = 2, V2_STREAM = 1 };

static bool
begins(const uint8_t *p, size_t n, const void *with, size_t len)
{
	return memcmp(p, with, n < len ? n : len) == 0;
}

bool
proxy_begins(const uint8_t *p, size_t n)
{
	return (n >= sizeof line_begin && begins(p, n, line_begin, sizeof line_begin)) ||
	       (n >= 8 && begins(p, n, signature, sizeof signature));
}

/* ---- version 1 ---- */

/* The next word of the line, behind one blank; false: there is none, or it does not fit. */
static bool
next_word(const char **at, char *out, size_t size)
{
	size_t n;

	if (**at != ' ')
		return false;
	n = strcspn(++*at, " ");
	if (n == 0 || n >= size)
		return false;
	memcpy(out, *at, n);
	out[n] = '\0';
	*at += n;
	return true;
}

static bool
read_port(const char **at, uint16_t *out)
{
	char word[6];
	unsigned long v;

	if (!next_word(at, word, sizeof word) || word[strspn(word, "0123456789")] != '\0')
		return false;
	v = strtoul(word, NULL, 10);
	*out = (uint16_t)v;
	return v <= UINT16_MAX && (word[0] != '0' || word[1] == '\0');
}

static bool
set_address(struct transport_addr *a, int family, const void *bytes, uint16_t port)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };

	if (family == AF_INET) {
		memcpy(&((struct sockaddr_in *)(void *)&ss)->sin_addr, bytes, 4);
		((struct sockaddr_in *)(void *)&ss)->sin_port = htons(port);
	} else {
		memcpy(&((struct sockaddr_in6 *)(void *)&ss)->sin6_addr, bytes, 16);
		((struct sockaddr_in6 *)(void *)&ss)->sin6_port = htons(port);
	}
	transport_addr_set(&ss, a);
	return true;
}

/* What follows the family: two addresses, two ports. */
static bool
read_line(const char *at, int family, struct proxy_header *h)
{
	char peer[INET6_ADDRSTRLEN], local[INET6_ADDRSTRLEN];
	uint8_t peer_bytes[16], local_bytes[16];
	uint16_t peer_port, local_port;

	return next_word(&at, peer, sizeof peer) && next_word(&at, local, sizeof local) &&
	       read_port(&at, &peer_port) && read_port(&at, &local_port) && *at == '\0' &&
	       inet_pton(family, peer, peer_bytes) == 1 &&
	       inet_pton(family, local, local_bytes) == 1 &&
	       set_address(&h->peer, family, peer_bytes, peer_port) &&
	       set_address(&h->local, family, local_bytes, local_port);
}

static enum proxy_result
parse_line(const uint8_t *p, size_t n, struct proxy_header *h, const char **why)
{
	size_t most = n < PROXY_LINE_MAX ? n : PROXY_LINE_MAX;
	const uint8_t *end = memchr(p, '\n', most);
	char line[PROXY_LINE_MAX + 1];
	size_t len;

	if (end == NULL && n < PROXY_LINE_MAX)
		return PROXY_MORE;
	*why = "the line of the PROXY protocol does not end after 107 bytes";
	if (end == NULL)
		return PROXY_BAD;
	*why = "the line of the PROXY protocol is not well formed";
	len = (size_t)(end - p);
	h->used = len + 1;
	if (len < sizeof line_begin || p[len - 1] != '\r' || memchr(p, 0, len) != NULL)
		return PROXY_BAD;
	len--;
	memcpy(line, p, len);
	line[len] = '\0';
	if (strncmp(line, "PROXY UNKNOWN", 13) == 0 && (line[13] == '\0' || line[13] == ' '))
		return PROXY_DONE;
	h->has_addresses = true;
	if (strncmp(line, "PROXY TCP4", 10) == 0 && read_line(line + 10, AF_INET, h))
		return PROXY_DONE;
	if (strncmp(line, "PROXY TCP6", 10) == 0 && read_line(line + 10, AF_INET6, h))
		return PROXY_DONE;
	return PROXY_BAD;
}

/* ---- version 2 ---- */

static unsigned
u16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static enum proxy_result
parse_binary(const uint8_t *p, size_t n, struct proxy_header *h, const char **why)
{
	unsigned family, len, address;
	const uint8_t *at = p + V2_HEAD;

	if (n < V2_HEAD)
		return PROXY_MORE;
	*why = "version or command of the PROXY protocol are none that is known";
	if (p[12] != V2_LOCAL && p[12] != V2_PROXY)
		return PROXY_BAD;
	len = u16(p + 14);
	*why = "the header of the PROXY protocol is too long";
	if (len > PROXY_HEADER_MAX - V2_HEAD)
		return PROXY_BAD;
	family = p[13] >> 4;
	address = family == V2_V4 ? 4 : 16;
	*why = "the header of the PROXY protocol is too short for its addresses";
	if (p[12] == V2_PROXY && (family == V2_V4 || family == V2_V6) && len < 2 * address + 4)
		return PROXY_BAD;
	if (n < V2_HEAD + len)
		return PROXY_MORE;
	h->used = V2_HEAD + len;
	h->is_own = p[12] == V2_LOCAL;
	/* Other families and datagrams: the sender says that it does not know. */
	if (p[12] == V2_LOCAL || (family != V2_V4 && family != V2_V6) || (p[13] & 0xf) != V2_STREAM)
		return PROXY_DONE;
	h->has_addresses = true;
	family = family == V2_V4 ? AF_INET : AF_INET6;
	(void)set_address(&h->peer, (int)family, at, (uint16_t)u16(at + 2 * address));
	(void)set_address(
	    &h->local, (int)family, at + address, (uint16_t)u16(at + 2 * address + 2));
	return PROXY_DONE;
}

enum proxy_result
proxy_parse(const uint8_t *p, size_t n, struct proxy_header *out, const char **why)
{
	*out = (struct proxy_header){ 0 };
	if (n == 0)
		return PROXY_MORE;
	if (begins(p, n, signature, sizeof signature))
		return n < sizeof signature ? PROXY_MORE : parse_binary(p, n, out, why);
	if (begins(p, n, line_begin, sizeof line_begin))
		return n < sizeof line_begin ? PROXY_MORE : parse_line(p, n, out, why);
	*why = "it does not begin with a header of the PROXY protocol, although its address is in "
	       "proxy.trusted";
	return PROXY_BAD;
}
