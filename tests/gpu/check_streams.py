"""Two streams: a race that was put in is found in one run, and the same program without it is not blamed; several devices where there are any."""

import subprocess

from program import Check, record

from conftest import binary

SOURCE = r"""
side = torch.cuda.Stream()
main = torch.cuda.current_stream()
torch.cuda.synchronize()
for i in range(6):
    x = og("race.make", torch.full)((1 << 20,), float(i), device="cuda")
    y = og("race.before", torch.add)(x, 1)
    if i == 4 and RACE:
        # A kernel of another stream, which nothing orders behind the next reading.
        side.wait_stream(main)
        with torch.cuda.stream(side):
            x.data.fill_(-1)
    torch.cuda._sleep(20_000_000)
    z = og("race.use", torch.mul)(x, y)
torch.cuda.synchronize()
"""
DEVICES = r"""
from opguard import _rt
for d in range(torch.cuda.device_count()):
    x = torch.full((4096,), float(d), device=f"cuda:{d}")
    y = og("devices.add", torch.add)(x, 1)
    z = og("devices.to", y.to)("cuda:0")
    print(*_rt.fingerprint(y.cpu()))
"""

with Check("streams") as check:
    for race in (False, True):
        with check.part(f"race {race}"):
            _, log, path = record(f"RACE = {race}\n" + SOURCE, OPGUARD_MODE="full")
            check.sound(log, f"race {race}")
            if binary("opguard") is None:  # a build of what runs inside programs alone
                check.figures["race"] = "not tried: this build has no opguard"
                continue
            result = subprocess.run([str(binary("opguard")), "align", "--single", str(path.parent)], capture_output=True, text=True, timeout=60)
            check(result.returncode == (1 if race else 0), f"race {race}: exit status {result.returncode}: {result.stdout[-800:]}{result.stderr[-800:]}")
            if race:
                check("race.use" in result.stdout, f"the race is found where it was read: {result.stdout[-800:]}")
                check.figures["found"] = result.stdout.strip().splitlines()[:12]
    with check.part("devices"):
        lines, log, _ = record(DEVICES, OPGUARD_MODE="full")
        check.sound(log, "devices")
        check([e.get("out", "out0").value for e in log.of("devices.add")] == [tuple(map(int, l.split())) for l in lines], "each device's own values")
        check.figures["devices"] = len(lines)
