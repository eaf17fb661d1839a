/* Frees large memory (a quarter of a gigabyte takes tens of milliseconds) on a separate thread: the loop has other
 * clients to serve, and the workers may be busy for minutes while the memory is needed. */
#ifndef SERVER_MEMORY_DISPOSAL_H
#define SERVER_MEMORY_DISPOSAL_H

/* Calls drop(object) soon. Any thread; the thread for it is started by the first call. Without memory, or without a
 * thread, drop is called at once. */
void disposal_later(void (*drop)(void *object), void *object);

/* Waits until all is freed and ends the thread. At the end of the process, when nobody calls disposal_later. */
void disposal_finish(void);

#endif
