"""Parts of a comparison, made by workers: `opguard align A B --on threads`, `--on ray`, `--on ray://head:10001`.

    part 3 of 64    a worker runs `opguard align A B --part 3/64`, and some kilobytes come back

A part is made of its ranks' logs alone (docs/formats/parts.md). So where a worker is lost, whoever is free makes it again. What a part says
itself, as that its logs cannot be read, another worker would say too: it is told, and the ranks of this part stay open.
Queue, workers and their retries are Ray's, or concurrent.futures'.
The cost: a process a part."""

import concurrent.futures
import contextlib
import os
import sys

from opguard.logs_need import need

TRIES = 4  # of a part whose worker is lost
PARTS_A_WORKER = 2  # so that one with little to do helps the others


def make(program, a, b, folder, where="threads", of=0, more=()):
    """Writes `folder`/N.json for each part of `of` (0: two a worker). program: that of opguard, where the workers are. where: "threads", "ray", or the
    address of a Ray cluster. more: further words for `opguard align`.

    -> (of, {number of a part that is missing: why}). ImportError: there is no Ray. ConnectionError: it does not answer."""
    with _workers(where) as (submit, count):
        of = of or count * PARTS_A_WORKER

        def begin(number):
            return submit([program, "align", a, b, "--part", "%d/%d" % (number, of), *more])

        waiting, missing = {begin(number): (number, 1) for number in range(1, of + 1)}, {}
        while waiting:
            for one in concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED).done:
                number, tries = waiting.pop(one)
                code, text, why = _result(one)
                if code < 0 and tries < TRIES:
                    waiting[begin(number)] = number, tries + 1
                elif code == 0:
                    with open(os.path.join(folder, "%d.json" % number), "w", encoding="utf-8") as file:
                        file.write(text)
                else:
                    missing[number] = why
            _progress(of - len(waiting), of)
    return of, missing


def _result(one):
    """(exit code, what was printed, the reason in a line) of a worker's program. 1: Ray has lost its worker too often."""
    try:
        code, text, said = one.result()
    except Exception as error:
        return 1, "", "%s: %s" % (type(error).__name__, (str(error).strip().splitlines() or [""])[0])
    if code < 0:
        return code, text, "ended by signal %d, %d times" % (-code, TRIES)
    return code, text, (said.strip().splitlines() or ["exit code %d" % code])[-1].removeprefix("opguard: ")


def _program():
    def run(command):  # Ray carries it to where there is no package of ours
        import subprocess

        ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    return run


@contextlib.contextmanager
def _workers(where):
    """(what takes a command and gives a future, how many workers there are).

    A cluster that the program has begun is used and left alone; one that was begun here ends here."""
    if where == "threads":
        count = len(os.sched_getaffinity(0))
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            yield lambda command: pool.submit(_program(), command), count
        return
    ray = need("ray", "--on ray")
    ours = not ray.is_initialized()
    if ours:
        # Of a cluster that Ray begins here nobody looks at the dashboard.
        cluster = {"address": where} if "://" in where else {"include_dashboard": False}
        ray.init(log_to_driver=False, logging_level="ERROR", **cluster)
    try:
        task = ray.remote(num_cpus=1, max_retries=TRIES - 1)(_program())
        yield lambda command: task.remote(command).future(), max(1, int(ray.cluster_resources().get("CPU", 1)))
    finally:
        if ours:
            ray.shutdown()


def _progress(done, of):
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[Kopguard: %d of %d parts" % (done, of) if done < of else "\r\033[K")
        sys.stderr.flush()
