"""Owns the processes of clients: who they are, at what rate they ask, and the tallies they send to the parent."""
import multiprocessing
import os
import random
import threading
import time
import traceback

import actors
import troublemakers
from connection import at_once

context = multiprocessing.get_context("fork")
TALLY_SECONDS = 0.5
class Tally:
    """What one process did since it last told: by actor, words counted; what went wrong."""

    def __init__(self, queue):
        self.queue, self.lock, self.told = queue, threading.Lock(), time.monotonic()
        self.clear()

    def clear(self):
        self.words, self.wrong = {}, []

    def add(self, actor, word, n=1):
        with self.lock:
            key = (actor, word)
            self.words[key] = self.words.get(key, 0) + n
        self.tell()

    def fail(self, actor, text):
        with self.lock:
            self.wrong.append(f"{actor}: {text}")
        self.add(actor, "WRONG")

    def tell(self, now=False):
        with self.lock:
            if now or time.monotonic() - self.told > TALLY_SECONDS:
                self.queue.put((self.words, self.wrong))
                self.told = time.monotonic()
                self.clear()


def act(client, tally, row):
    try:
        tally.add(row[0], row[2](client))
        for more, n in client.more.items():
            tally.add(row[0], more, n)
        client.more = {}
    except actors.Wrong as wrong:
        tally.fail(row[0], str(wrong)[:1200])
    except Exception:  # a mistake of ours, or a connection refused: neither may happen
        tally.fail(row[0], traceback.format_exc()[-600:])


def loop(target, client, tally, rows, pause):
    """Until the parent says stop; between requests it waits while the parent wants calm. Each kind comes once before chance draws."""
    first = client.rng.sample(rows, len(rows))
    while not target.stop.is_set():
        if not target.go.is_set():
            client.drop()
            time.sleep(0.05)
            continue
        began = time.monotonic()
        act(client, tally, first.pop() if first else client.rng.choices(rows, [row[1] for row in rows])[0])
        time.sleep(max(0.0, pause * client.rng.uniform(0.5, 1.5) - (time.monotonic() - began)))
    client.drop()


def member(target, queue, seed, name, rows, pause, n_threads):
    """One process."""
    tally = Tally(queue)
    many = [actors.Client(target.port, f"{seed} {name} {i}", f"{name}-{i}") for i in range(n_threads)]
    at_once(lambda client: loop(target, client, tally, rows, pause), many)
    tally.tell(now=True)


class Target:
    """What every process is given: where the server is, and the parent's two signals."""

    def __init__(self, port):
        self.port, self.go, self.stop = port, context.Event(), context.Event()


BURST = [("burst", 1, actors.burst)]


class Crowd:
    def __init__(self, port, seed, n_well, rate):
        self.queue, self.target = context.Queue(), Target(port)
        rows = [(f"well{i}", actors.ACTORS, 1 / rate, 1) for i in range(n_well)]
        rows += [("hostile", troublemakers.HOSTILE, 0.04, 2), ("slow", troublemakers.SLOW, 0.1, 12), ("burst", BURST, 5.0, 1)]
        self.n_threads = sum(row[3] for row in rows)
        self.members = [context.Process(target=member, args=(self.target, self.queue, seed, *row), daemon=True) for row in rows]

    def start(self):
        self.target.go.set()
        for process in self.members:
            process.start()

    def calm(self, wanted):
        (self.target.go.clear if wanted else self.target.go.set)()

    def stop(self, take, seconds=45):
        """Everyone finishes what he is at; names of those who did not."""
        self.target.stop.set()
        end = time.monotonic() + seconds
        while any(p.is_alive() for p in self.members) and time.monotonic() < end:
            take(self.queue)
            time.sleep(0.05)
        take(self.queue)
        stuck = [f"client process {p.pid} does not end" for p in self.members if p.is_alive()]
        stuck += [f"client process {p.pid} ended with {p.exitcode}" for p in self.members if p.exitcode not in (0, None)]
        for process in self.members:
            if process.is_alive():
                process.kill()
            process.join()
        return stuck


def seed_from(text):
    return text or str(random.Random(os.urandom(8)).randrange(10 ** 9))
