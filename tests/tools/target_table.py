"""core/tools/PRESETS.md: which presets each target of /translate states exactly, and what it loses of the others.

    python3 tests/tools/target_table.py URL >core/tools/PRESETS.md         # URL of a server without stored presets
"""
import collections
import json
import sys
import urllib.request

HEAD = """# Presets in the words of each target

Made by `python3 tests/tools/target_table.py URL` from the answers of `/translate`, one for each preset with rotary positions, or for each kind of its layers
where the target states one kind at a time. `rounding` is a loss of at most 2^-22 of a frequency. Presets of other schemes, and kinds without positions, have
no words in any target (but `none` in Megatron-LM's).
"""


def ask(url, fields=None):
    body = json.dumps(fields).encode() if fields else None
    with urllib.request.urlopen(urllib.request.Request(url, body, {"Content-Type": "application/json"})) as answer:
        return json.load(answer)


def main(url):
    exact, total, losing = collections.Counter(), collections.Counter(), collections.defaultdict(lambda: collections.defaultdict(set))
    for preset in ask(f"{url}/presets")["presets"]:
        answer = ask(f"{url}/translate", {"preset": preset["name"]})
        if not any((kind["config"] or {}).get("scheme") == "rope" for kind in answer["layers"]):
            continue
        for entry in answer["targets"]:
            if entry["value"] is None and not any(loss["wanted"] == "rope" for loss in entry["loses"]):
                continue
            exact[entry["to"]] += entry["exact"]
            total[entry["to"]] += 1
            for loss in entry["loses"]:
                losing[entry["to"]][loss["what"]].add(preset["name"])
    print(HEAD)
    print("| target | exact | of | loses |\n|---|---|---|---|")
    for target, n in total.items():
        what = "; ".join(f"`{name}`: {', '.join(sorted(presets))}" for name, presets in sorted(losing[target].items()))
        print(f"| `{target}` | {exact[target]} | {n} | {what} |")


if __name__ == "__main__":
    main(sys.argv[1].rstrip("/"))
