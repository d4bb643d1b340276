/* SPDX-License-Identifier: Apache-2.0
 * How other threads wake the core thread: an eventfd that the loop watches. */
#ifndef BASE_WAKE_H
#define BASE_WAKE_H

int wake_new(void);	/* the descriptor; aborts where there is none left: called at the start only */
void wake_up(int fd);	/* any thread; readable from now on */
void wake_clear(int fd);
void wake_wait(int fd, int ms);	/* blocks until it is readable, at most so long: at the end only */
void wake_free(int *fd);

#endif
