/* Frees large memory on a separate thread. Freeing a quarter of a gigabyte takes tens of milliseconds; meanwhile the
 * loop has other clients to serve, and the workers may be busy for minutes while the memory is needed. */
#ifndef SERVER_MEMORY_DISPOSAL_H
#define SERVER_MEMORY_DISPOSAL_H

/* Calls drop(object) soon, on a thread that the first call starts. Any thread. Without memory, or without a thread,
 * drop is called at once. */
void disposal_later(void (*drop)(void *object), void *object);

/* Waits until all is freed and ends the thread. Call it at the end of the process, when no thread calls disposal_later
 * any more. */
void disposal_finish(void);

#endif
