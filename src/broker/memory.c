/* SPDX-License-Identifier: Apache-2.0
 * The memory alarm: see the header. */
#include "broker/memory.h"

#include "base/log.h"

void
memory_init(struct memory *m, uint64_t limit)
{
	*m = (struct memory){
		.limit = limit, .hard = limit + limit / 10, .clear = limit - limit / 20
	};
}

/* The state that `held` bytes call for. Each state is left below a lower mark than the one it is entered at. */
static enum memory_state
next_state(const struct memory *m, uint64_t held)
{
	if (held >= m->hard)
		return MEMORY_HARD;
	if (held >= m->limit)
		return m->state == MEMORY_HARD ? MEMORY_HARD : MEMORY_HIGH;
	if (held >= m->clear && m->state != MEMORY_FINE)
		return MEMORY_HIGH;
	return MEMORY_FINE;
}

bool
memory_check(struct memory *m, uint64_t now_ms)
{
	enum memory_state was = m->state;
	uint64_t held;

	if (m->limit == 0)
		return false;
	held = mem_total();
	m->state = next_state(m, held);
	if (m->state == was)
		return false;
	if (was == MEMORY_FINE)
		m->alarms++;
	if (m->state == MEMORY_FINE)
		log_info("memory alarm is over: %llu of %llu bytes held, after %llu ms",
		    (unsigned long long)held, (unsigned long long)m->limit,
		    (unsigned long long)(now_ms - m->since_ms));
	else
		log_warning("memory alarm: %llu bytes held, the limit is %llu%s",
		    (unsigned long long)held, (unsigned long long)m->limit,
		    m->state == MEMORY_HARD ? "; over the hard limit: nobody may publish"
		                            : ": publishers are held back");
	if (was == MEMORY_FINE || m->state == MEMORY_FINE)
		m->since_ms = now_ms;
	return true;
}

const struct error *
memory_check_topology(const struct memory *m, const char *what, struct span name, const char *vhost)
{
	if (m->limit == 0 || mem_held[MEM_TOPOLOGY] < m->limit / 2)
		return NULL;
	return error_make(E_PRECONDITION_FAILED,
	    "cannot %s '%.*s'%s%s%s: queues, exchanges, bindings and consumers take half of "
	    "memory.limit",
	    what, SPAN_FMT(name), vhost != NULL ? " in vhost '" : "", vhost != NULL ? vhost : "",
	    vhost != NULL ? "'" : "");
}
