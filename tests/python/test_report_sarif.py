"""--sarif: by hand against the parts of SARIF 2.1.0 that code review reads, and against the official schema where it can be had."""
import json
import subprocess
import tarfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import build_dir
from report_logs import Runs, runs, sides  # noqa: F401 (a fixture)


@pytest.fixture
def sarif(runs, tmp_path):  # noqa: F811
    path = tmp_path / "out.sarif"
    assert runs.compare("--sarif", path).returncode == 1
    return json.loads(path.read_text())


@pytest.fixture(scope="session")
def validate(tmp_path_factory):
    """validate(document) against the official schema, from the npm package that carries it; kept in the build folder."""
    jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")
    kept = build_dir() / "sarif-schema-2.1.0.json"
    if not kept.is_file():
        folder = tmp_path_factory.mktemp("npm")
        try:
            subprocess.run(["npm", "pack", "--silent", "@microsoft/jest-sarif@1.0.0-beta.0"], cwd=folder, check=True, timeout=120, capture_output=True)
        except (OSError, subprocess.SubprocessError):
            pytest.skip("the SARIF schema cannot be fetched by npm")
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as package:
            name = next((n for n in package.getnames() if "schemas/sarif-2.1.0" in n), None)
            if name is None:
                pytest.skip("the npm package holds no SARIF schema")
            kept.write_bytes(package.extractfile(name).read())
    schema = json.loads(kept.read_text())
    return lambda document: jsonschema.validate(document, schema)


def resolve(run, location):
    """The file a physical location means."""
    artifact = location["physicalLocation"]["artifactLocation"]
    base = run["originalUriBaseIds"][artifact["uriBaseId"]]["uri"]
    assert base.startswith("file:///") and base.endswith("/")
    return Path(unquote(urlsplit(base + artifact["uri"]).path))


def marked(run, location):
    """The text a region means, in its file; columns count characters from 1."""
    region = location["physicalLocation"]["region"]
    lines = resolve(run, location).read_text().splitlines()[region["startLine"] - 1 : region.get("endLine", region["startLine"])]
    lines[-1] = lines[-1][: region["endColumn"] - 1]
    lines[0] = lines[0][region["startColumn"] - 1 :]
    return "\n".join(lines)


def test_pivot_is_an_error_at_its_expression(sarif, tmp_path):
    assert sarif["version"] == "2.1.0"
    [run] = sarif["runs"]
    assert run["tool"]["driver"]["name"] == "opguard" and run["columnKind"] == "unicodeCodePoints"
    pivot = run["results"][0]
    assert (pivot["ruleId"], pivot["level"]) == ("value", "error")
    assert run["tool"]["driver"]["rules"][pivot["ruleIndex"]]["id"] == "value"
    assert "stop being bit-identical at @ (forward, step 1, rank 0)" in pivot["message"]["text"]
    [place] = pivot["locations"]
    assert resolve(run, place) == tmp_path / "tree_b" / "model.py"
    assert marked(run, place) == place["physicalLocation"]["region"]["snippet"]["text"] == "q @ k"
    [other] = pivot["relatedLocations"]
    assert resolve(run, other) == tmp_path / "tree_a" / "model.py" and marked(run, other) == "q @ k"
    assert pivot["partialFingerprints"] == {"opguardBoundary/v1": "model.matmul:aaaa"}
    assert all(result["level"] == "note" for result in run["results"][1:])
    assert run["properties"]["verdict"] == "diverged"


def test_code_flow_leads_from_the_certified_prefix_to_the_pivot(sarif):
    [flow] = sarif["runs"][0]["results"][0]["codeFlows"]
    locations = flow["threadFlows"][0]["locations"]
    texts = [at["location"]["message"]["text"] for at in locations]
    assert texts[0].startswith("the last pair certified equal: ") and texts[-1].startswith("here the runs part: @")


def test_structure_of_one_side(tmp_path, opguard):
    # A cast alone would be taken for harmless.
    specs = json.loads(json.dumps(sides(tmp_path)).replace("model.to:eeee", "model.sin:eeee").replace('".to"', '"torch.sin"'))
    # The operator only b has makes the difference, out of a value both runs hold.
    step = {e["boundary"]: e["slots"] for e in specs["b"]["processes"][0]["events"] if e["step"] == 1 and e["kind"] == 0}
    step["model.matmul:aaaa"][2]["value"] = step["model.sin:eeee"][0]["value"] = 1003
    for key in ("value", "dtype"):
        step["model.softmax:bbbb"][0][key] = step["model.sin:eeee"][1][key]
    both = Runs(tmp_path, opguard).write(**specs)
    path = tmp_path / "out.sarif"
    assert both.compare("--sarif", path).returncode == 1
    run = json.loads(path.read_text())["runs"][0]
    assert marked(run, run["results"][0]["locations"][0]) == "(q @ k).to(torch.bfloat16)"
    assert "relatedLocations" not in run["results"][0]


def test_schema(sarif, validate):
    validate(sarif)
    with pytest.raises(Exception, match="error"):
        sarif["runs"][0]["results"][0]["level"] = "no such level: not error"
        validate(sarif)


def test_schema_of_other_verdicts(tmp_path, opguard, validate):
    specs = sides(tmp_path, change=0, extra=False)
    both = Runs(tmp_path, opguard).write(**specs)
    path = tmp_path / "same.sarif"
    assert both.compare("--sarif", path).returncode == 0
    same = json.loads(path.read_text())
    validate(same)
    assert same["runs"][0]["results"] == []


def test_hostile_text(tmp_path, opguard, validate):
    specs = sides(tmp_path)
    hostile = {"hex": "1b5b33316dff00e280ae202523"}
    for spec in specs.values():
        for at in spec["processes"][0]["locations"]:
            at["file"] = at["function"] = at["callee"] = hostile
            at["text"] = hostile
    both = Runs(tmp_path, opguard).write(**specs)
    path = tmp_path / "hostile.sarif"
    assert both.compare("--sarif", path).returncode == 1
    raw = path.read_bytes()
    assert b"\x1b" not in raw and b"\xff" not in raw and "\u202e" not in raw.decode()
    document = json.loads(raw)
    validate(document)
    uri = document["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "%1B%5B31m%FF%00%E2%80%AE%20%25%23"
