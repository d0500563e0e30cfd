"""Files of parts (docs/formats/parts.md) that no log stands behind: what a fleet of any size could tell."""
import json


def finding(boundary, name, line, step, **more):
    base = {"kind": "value", "boundary": boundary, "name": name, "file": "train.py", "phase": "forward", "why": "it reads the same and gives another result",
            "line": line, "step": step, "micro_batch": 0, "occurrence": step, "received": False, "group": "", "sequence": 0, "passed": {}}  # fmt: skip
    return {**base, **more}


def groups(rank, ranks):
    """Of eight neighbours, and of every eighth rank, as their program names them."""
    first, column = rank // 8 * 8, rank % 8
    return {"tp": f"{first}-{min(ranks, first + 8) - 1}", "dp": f"{column}-{column + (ranks - 1 - column) // 8 * 8}/8"}


def fleet_ranks(ranks, steps):
    """It begins on rank 5/7, in step 3/4. Its group of eight gets it in this step, all others in the next; a hundredth has no log."""
    at_rank, at_step = ranks * 5 // 7, steps * 3 // 4
    group = range(at_rank // 8 * 8, min(ranks, at_rank // 8 * 8 + 8))
    inner, outer = f"{group[0]}-{group[-1]}", f"0-{ranks - 1}"
    for rank in range(ranks):
        one = {"rank": rank, "place": 0, "state": "differs", "why": "", "steps": steps, "pairs": 100 * steps, "records": 300 * steps,
               "certified": 100 * at_step, "unread_steps": at_step - 1, "findings": [], "groups": groups(rank, ranks)}  # fmt: skip
        if rank == at_rank:
            one["findings"] = [finding("train.matmul:aaaa", "torch.matmul", 12, at_step, passed={inner: at_step, outer: at_step})]
        elif rank in group:
            one["findings"] = [finding("train.all_reduce:bbbb", "dist.all_reduce", 40, at_step, received=True, group=inner, sequence=at_step + 1,
                                       passed={inner: at_step, outer: at_step})]  # fmt: skip
        elif rank % 100 == 50:
            one.update(state="open", why="run b has no log of it", steps=0, pairs=0, records=0, certified=0, unread_steps=0)
        else:
            one["findings"] = [finding("train.all_reduce:cccc", "dist.all_reduce", 44, at_step + 1, received=True, group=outer, sequence=at_step + 2,
                                       passed={outer: at_step + 1})]  # fmt: skip
        yield one


def write_parts(folder, ranks, steps, files):
    """-> the paths of so many files."""
    all_ranks, paths = list(fleet_ranks(ranks, steps)), []
    for number in range(files):
        mine = all_ranks[ranks * number // files : ranks * (number + 1) // files]
        part = {"opguard_part": 1, "a": "a/log", "b": "b/log", "of": files, "parts": [number + 1], "refused": "", "ranks": mine}
        paths.append(folder / f"part{number + 1}.json")
        paths[-1].write_text(json.dumps(part))
    return paths
